"""Vectors of a graph's entities and relations: TransE, DistMult, RotatE."""

import dataclasses
import functools
import math
import pathlib

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tfnlp.baselines.word_vectors import WordVectors
from tfnlp.knowledge.graph_vector_settings import METHODS
from tfnlp.utils.errors import InputError, unknown_name
from tfnlp.utils.files import read_json, write_json


def transe_score(head, relation, tail, norm=1):
    """Return -|h + r - t|, the L1 or L2 norm (Bordes et al. 2013), over the last axis."""
    return -ops.norm(head + relation - tail, ord=norm, axis=-1)


def distmult_score(head, relation, tail):
    """Return h^T diag(r) t (Yang et al. 2015, section 3.2), over the last axis."""
    return ops.sum(head * relation * tail, axis=-1)


def rotate_score(head, phase, tail):
    """Return -|h * e^(i phase) - t|, the sum of moduli (Sun et al. 2019, eq. 3).

    Args:
        head, tail: (..., 2 D), real parts, then imaginary parts.
        phase: (..., D), radians.
    """
    (head_re, head_im), (tail_re, tail_im) = ops.split(head, 2, -1), ops.split(tail, 2, -1)
    cos, sin = ops.cos(phase), ops.sin(phase)
    real = head_re * cos - head_im * sin - tail_re
    imaginary = head_re * sin + head_im * cos - tail_im
    # The small number keeps the gradient finite where a triple fits exactly.
    return -ops.sum(ops.sqrt(real**2 + imaginary**2 + 1e-12), axis=-1)


def margin_loss(positive, negative, margin):
    """Return the mean of [margin - f(triple) + f(corruption)]_+ (Bordes et al. 2013, eq. 1).

    Args:
        positive: (B,), scores f of triples.
        negative: (B, N), those of their corruptions.
        margin: a number.
    """
    return ops.mean(ops.relu(margin - positive[:, None] + negative))


def self_adversarial_loss(positive, negative, margin, temperature):
    """Return the loss of Sun et al. 2019, eq. 5 and 6, where a score f is -d.

    -log sigmoid(margin + f(triple)) - sum p log sigmoid(-f(corruption) - margin), with weights
    p = softmax(temperature f(corruption)), without a gradient.

    Args:
        positive: (B,), scores f of triples.
        negative: (B, N), those of their corruptions.
        margin, temperature: numbers.
    """
    weights = ops.stop_gradient(ops.softmax(temperature * negative, axis=-1))
    corrupted = ops.sum(weights * ops.softplus(margin + negative), axis=-1)
    return ops.mean(ops.softplus(-margin - positive) + corrupted)


class GraphVectors(keras.Model):
    """Vectors of entities and relations, and the score of triples.

    The vectors of entities have length 1 after each step in TransE and DistMult, as in their
    papers; those of relations begin so. RotatE's begin as in the authors' code, uniform within
    (margin + 2) / dim, which stands for a phase of pi.

    Args:
        num_entities, num_relations: their numbers.
        settings: one of `METHODS`.
    """

    def __init__(self, num_entities, num_relations, settings):
        super().__init__()
        self.settings, self.num_entities = settings, num_entities
        rotate = settings.method == "rotate"
        limit = (settings.margin + 2) / settings.dim if rotate else 6 / math.sqrt(settings.dim)
        self.radians = math.pi / limit if rotate else 1
        self.noise = keras.random.SeedGenerator(settings.seed)
        penalty = getattr(settings, "relation_penalty", 0)
        self.entities = keras.layers.Embedding(
            num_entities,
            settings.dim * (1 + rotate),
            embeddings_initializer=self._initializer(limit, not rotate),
            embeddings_constraint=None if rotate else keras.constraints.UnitNorm(axis=1),
        )
        self.relations = keras.layers.Embedding(
            num_relations,
            settings.dim,
            embeddings_initializer=self._initializer(limit, not rotate),
            embeddings_regularizer=keras.regularizers.L2(penalty) if penalty else None,
        )
        self._score = {
            "transe": functools.partial(transe_score, norm=getattr(settings, "norm", None)),
            "distmult": distmult_score,
            "rotate": rotate_score,
        }[settings.method]
        self.entities.build()
        self.relations.build()
        self.built = True

    def _initializer(self, limit, unit):
        uniform = keras.initializers.RandomUniform(-limit, limit, self.noise)
        scale = keras.constraints.UnitNorm(axis=1)
        return (lambda shape, dtype: scale(uniform(shape, dtype))) if unit else uniform

    def score(self, heads, relations, tails):
        """Return the scores of triples of ids, which are broadcast, as by NumPy."""
        return self._score(
            self.entities(heads), self.radians * self.relations(relations), self.entities(tails)
        )

    def call(self, triples):
        """Return the scores (B,) of triples (B, 3)."""
        return self.score(triples[:, 0], triples[:, 1], triples[:, 2])

    def corrupt(self, triples):
        """Return the ids of heads and tails, (B, N), where another entity replaces one of them.

        Each triple has its head or its tail replaced, at random (Bordes et al. 2013, eq. 2).
        """
        shape = ops.shape(triples)[0], self.settings.negatives
        heads, tails = triples[:, :1], triples[:, 2:]
        of_head = keras.random.uniform(ops.shape(heads), seed=self.noise) < 0.5
        drawn = keras.random.randint(shape, 0, self.num_entities - 1, seed=self.noise)
        drawn += ops.cast(drawn >= ops.where(of_head, heads, tails), drawn.dtype)
        return ops.where(of_head, drawn, heads), ops.where(of_head, tails, drawn)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Return the loss of triples `x` whose scores are `y_pred`."""
        heads, tails = self.corrupt(x)
        negative, settings = self.score(heads, x[:, 1:2], tails), self.settings
        if settings.loss == "margin":
            loss = margin_loss(y_pred, negative, settings.margin)
        else:
            loss = self_adversarial_loss(y_pred, negative, settings.margin, settings.temperature)
        return loss + sum(self.losses)

    def train(self, triples):
        """Fit the vectors to triples, (n, 3).

        Raises:
            InputError: if the loss is not finite.
        """
        settings = self.settings
        self.compile(optimizer=keras.optimizers.Adam(settings.learning_rate))
        data = tf.data.Dataset.from_tensor_slices(triples)
        data = data.shuffle(len(triples), seed=settings.seed).batch(settings.batch_triples)
        history = self.fit(data, epochs=settings.epochs, shuffle=False, verbose=0)
        if not math.isfinite(history.history["loss"][-1]):
            raise InputError(
                f"The loss is {history.history['loss'][-1]}; give a learning_rate below "
                f"{settings.learning_rate}."
            )

    def save_vectors(self, folder, graph):
        """Write entities.bin and relations.bin, in word2vec's binary format, and config.json.

        A complex vector of RotatE is its real parts, then its imaginary parts; the vector of a
        relation is its phases in radians.
        """
        folder = pathlib.Path(folder)
        relations = self.radians * self.relations.embeddings.numpy()
        WordVectors(graph.entities, self.entities.embeddings.numpy()).save(folder / "entities.bin")
        WordVectors(graph.relations, relations).save(folder / "relations.bin")
        settings = dataclasses.asdict(self.settings)
        write_json(folder / "config.json", {"method": self.settings.method, **settings})


def load_graph_vectors(folder):
    """Return the `GraphVectors` of a folder, and the names of its entities and relations.

    Raises:
        InputError: if a file is missing, broken, or of another width than config.json says.
    """
    folder = pathlib.Path(folder)
    config = read_json(folder / "config.json")
    method = config.pop("method", None)
    if method not in METHODS:
        raise unknown_name(f"{folder / 'config.json'}: method", method, METHODS)
    entities, relations = (
        WordVectors.load(folder / f"{name}.bin") for name in ("entities", "relations")
    )
    model = GraphVectors(len(entities), len(relations), METHODS[method](**config))
    for table, vectors, scale in (
        (model.entities, entities.vectors, 1),
        (model.relations, relations.vectors, model.radians),
    ):
        if table.embeddings.shape != vectors.shape:
            raise InputError(
                f"{folder} has vectors of width {vectors.shape[1]}, and config.json says "
                f"{table.embeddings.shape[1]}; copy the files of one run."
            )
        table.embeddings.assign(vectors / np.float32(scale))
    return model, entities.words, relations.words
