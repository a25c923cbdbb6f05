"""Denoising entity auto-encoder beside masked language modelling.

Zhang et al. 2019, 'ERNIE: Enhanced Language Representation with Informative Entities', section
3.5.
"""

import dataclasses
import hashlib
from typing import ClassVar

import keras
import numpy as np
from keras import ops

from tfnlp.configs import BertConfig, family_name
from tfnlp.functional.weighted_losses import cross_entropy
from tfnlp.objectives.batches.masking import MaskedBatches
from tfnlp.objectives.masked_lm import MaskedLM
from tfnlp.objectives.masked_positions import predict_at_positions
from tfnlp.objectives.objective import Objective, accuracy
from tfnlp.text.batching.batches import IGNORED
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import setting

TOKENS, ENTITIES, CANDIDATES = "tokens", "entities", "candidate_ids"


@dataclasses.dataclass(frozen=True)
class DenoisingEntities(Objective):
    """Prediction of each token's entity from a text whose alignments are noisy, and masked LM.

    Eq. 6: `p(e_j | w_i) = softmax_j(linear(w_i) . e_j)` over the entities e_1 .. e_m of the text.
    An alignment is to another entity of the batch with the probability `replaced`, and hidden with
    `hidden`. The loss is the sum of both means.

    Args:
        masked_lm: the `MaskedLM` for the tokens.
        replaced: share of alignments to a random entity.
        hidden: share of tokens with an entity that are not aligned to it.

    Raises:
        InputError: if a share is not in [0, 1], or both are above 1 together.
    """

    masked_lm: MaskedLM = dataclasses.field(default_factory=MaskedLM)
    replaced: float = setting(0.05, "Share of alignments to a random entity.", low=0, high=1)
    hidden: float = setting(0.15, "Share of hidden alignments.", low=0, high=1)

    head: ClassVar[str] = "masked_lm"
    loss_name: ClassVar[str] = "entity_loss"
    reads_entities: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        if self.replaced + self.hidden > 1:
            raise InputError(
                f"replaced={self.replaced} and hidden={self.hidden} must be 1 at most together."
            )

    @property
    def loss_weights(self):
        """The loss weights: the total is the sum of both losses, as in the paper."""
        return {"masked_lm_loss": 1.0, self.loss_name: 1.0}

    def check(self, config, tokenizer):
        """Raise an InputError for a family but BERT, or a tokenizer that finds no entities."""
        super().check(config, tokenizer)
        if not isinstance(config, BertConfig):
            raise InputError(f"A {family_name(config)} cannot read entities; give a BERT.")
        self.masked_lm.masking(tokenizer)
        if not hasattr(tokenizer, "entity_ids"):
            raise InputError(
                "The tokenizer finds no entities; give a model that reads them, or the "
                "`entity_vectors` that a BERT is to read."
            )

    def trained(self, model):
        """Return the model to fit, with the weights of `model` and the linear layer of eq. 6.

        Its outputs are `logits` (B, P, V) and `entity_logits` (B, L, C), for the further input
        `candidate_ids` (B, C), each text's entities.
        """
        predicting = predict_at_positions(model)
        candidates = keras.Input((None,), dtype="int32", name=CANDIDATES)
        table = model.get_layer("entity_embeddings")
        linear = keras.layers.Dense(table.output_dim, name="entity_predictor")
        score = CandidateScores(dtype="float32", name="candidate_scores")
        logits = score(linear(model.output["sequence_output"]), table(candidates), candidates)
        outputs = {"logits": predicting.output["logits"], "entity_logits": logits}
        inputs = predicting.input | {CANDIDATES: candidates}
        return keras.Model(inputs, outputs, name=model.name)

    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        """Build the `DenoisingBatches` of a corpus, with labels of tokens and of entities.

        Raises:
            InputError: if `max_length` leaves no room.
        """

        def make(*arguments, **options):
            return DenoisingBatches(*arguments, tokenizer, self, **options)

        arguments = corpus, tokenizer, batch_size, max_length, seed, shuffle
        return self.masked_lm.batches(*arguments, kind=make)

    def align(self, entity_ids, rng):
        """Return noisy alignments (B, L) of entities (B, L), 0 at tokens without one.

        Args:
            entity_ids: (B, L) int32, 0 for none.
            rng: a `numpy.random.Generator`.
        """
        draws, real = rng.random(entity_ids.shape), entity_ids > 0
        if not real.any():
            return entity_ids
        others = rng.choice(entity_ids[real], entity_ids.shape)
        noisy = np.where(draws < self.replaced, others, entity_ids)
        noisy = np.where(draws >= 1 - self.hidden, 0, noisy)
        return np.where(real, noisy, 0).astype("int32")

    def losses(self, labels, outputs, sample_weight=None):
        """Return both losses by name, means over masked tokens and over tokens with an entity."""
        entities = labels[ENTITIES], outputs["entity_logits"]
        return {
            **self.masked_lm.losses(labels[TOKENS], outputs, sample_weight),
            self.loss_name: cross_entropy(*entities, sample_weight),
        }

    def scores(self, labels, outputs):
        """Return the numbers of correct and of all predictions, for tokens and for entities."""
        return {
            **self.masked_lm.scores(labels[TOKENS], outputs),
            "entity_accuracy": accuracy(labels[ENTITIES], outputs["entity_logits"]),
        }


class CandidateScores(keras.layers.Layer):
    """Products of states (B, L, E) with candidates' vectors (B, C, E), to (B, L, C).

    Those of the candidates (B, C) with the id 0, which are padding, are -1e9.
    """

    def call(self, states, vectors, candidate_ids):
        scores = ops.matmul(states, ops.transpose(vectors, (0, 2, 1)))
        return ops.where(candidate_ids[:, None] > 0, scores, -1e9)

    def compute_output_shape(self, states_shape, vectors_shape, candidate_ids_shape):
        return (*states_shape[:-1], vectors_shape[1])


class DenoisingBatches(MaskedBatches):
    """Batches of masked texts with noisy `entity_ids`, (B, L), and `candidate_ids`, (B, C).

    The labels are `tokens` (B, P), and `entities` (B, L), the candidate of each token with an
    entity, -100 elsewhere.

    Args:
        encodings, batch_size, masking, options: as in `MaskedBatches`.
        tokenizer: an `EntityTokenizer`.
        objective: the `DenoisingEntities`.
    """

    def __init__(self, encodings, batch_size, masking, tokenizer, objective, **options):
        super().__init__(encodings, batch_size, masking, **options)
        self.tokenizer = tokenizer
        self.objective = objective

    def masked_batch(self, indices, rng):
        (inputs,) = self.batch(indices)
        entity_ids = self.tokenizer.entity_ids(inputs["token_ids"])
        inputs, tokens = self.mask(inputs, rng)
        candidates, labels = candidates_of(entity_ids)
        noisy = self.objective.align(entity_ids, rng)
        inputs |= {"entity_ids": noisy, CANDIDATES: candidates}
        return inputs, {TOKENS: tokens, ENTITIES: labels}

    def fingerprint(self):
        shares = self.objective.replaced, self.objective.hidden
        entities = sorted(self.tokenizer.entities.items()), self.tokenizer.by_morphemes
        text = f"{super().fingerprint()} {shares} {entities}"
        return hashlib.sha256(text.encode()).hexdigest()

    def signature(self):
        inputs, ids = super().signature()
        return inputs | {"entity_ids": ids, CANDIDATES: ids}, {TOKENS: ids, ENTITIES: ids}


def candidates_of(entity_ids):
    """Return the distinct entities of each text, and the place of each token's among them.

    Args:
        entity_ids: (B, L) int32, 0 for none.

    Returns:
        The entities, (B, C) int32, in ascending order, 0 where a text has fewer, and the places,
        (B, L) int32, -100 at tokens without an entity. C is at least 2, as a softmax needs.
    """
    rows = [np.unique(row[row > 0]) for row in entity_ids]
    candidates = np.zeros((len(rows), max(2, *map(len, rows))), "int32")
    labels = np.full(entity_ids.shape, IGNORED, "int32")
    for i, row in enumerate(rows):
        candidates[i, : len(row)] = row
        real = entity_ids[i] > 0
        labels[i, real] = np.searchsorted(row, entity_ids[i, real])
    return candidates, labels
