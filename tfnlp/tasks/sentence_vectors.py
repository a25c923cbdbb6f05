"""Vectors of texts that are near each other where the texts mean alike."""

import dataclasses
import functools

import keras
import numpy as np
from keras import ops

from tfnlp.functional import vector_losses
from tfnlp.layers import MergeChoices
from tfnlp.tasks.classifier_settings import changed
from tfnlp.tasks.kinds import EMBEDDER
from tfnlp.tasks.regression import correlations
from tfnlp.tasks.retrieval import bm25_scores, retrieval_scores
from tfnlp.tasks.task import Task
from tfnlp.tasks.vector_settings import (
    DOCUMENT_PROMPTS,
    RANGES,
    RETRIEVAL_SCORES,
    SCORED,
    SIMILARITY_SCORES,
    VectorSettings,
)
from tfnlp.text.reading.readers import as_finite_number, read_columns
from tfnlp.utils.errors import InputError

LOSSES = {
    "ranking": vector_losses.ranking_loss,
    "cosine": vector_losses.cosine_loss,
    "cosent": vector_losses.cosent_loss,
    "triplet": vector_losses.triplet_loss,
    "contrastive": vector_losses.contrastive_loss,
}


@dataclasses.dataclass
class TextGroups:
    """Texts that belong together, or do not.

    Args:
        texts: a tuple of n strings for each example: an anchor, a text to compare with it, and
            n - 2 that are unlike it.
        scores: how much the first two are alike, a number for each example; or None.
    """

    texts: list
    scores: list | None = None

    def __len__(self):
        return len(self.texts)


def read_text_groups(path, columns, score_column=None):
    """Read `TextGroups` from a table.

    Args:
        path: TSV, CSV, JSON or JSON Lines, also with .gz, or Parquet.
        columns: of the texts, the anchor first.
        score_column: of the number, or None.

    Raises:
        InputError: as in `read_columns`, for fewer than 2 columns, an empty text, and a score
            that is no finite number.
    """
    if len({*columns}) < max(2, len(columns)):
        raise InputError(
            f"text_columns={','.join(columns)} must name at least 2 columns, each once: of the "
            "text, of one like it, and of any unlike it."
        )
    groups, scores = [], []
    for place, row in read_columns(path, [*columns, *filter(None, [score_column])]):
        texts = tuple(row[column] for column in columns)
        for column, text in zip(columns, texts, strict=True):
            if not text.strip():
                raise InputError(
                    f"{path}, {place}: {column} is empty; write a text, or leave it out."
                )
        groups.append(texts)
        if score_column:
            scores.append(as_finite_number(row[score_column], f"{path}, {place}: {score_column}"))
    return TextGroups(groups, scores if score_column else None)


def prompts_of(settings, **prompts):
    """Return what first and other texts begin with, a pair, and the settings of a model of these.

    Args:
        settings: of an embedder's folder.
        prompts: `query` or `document`, in place of those of the settings.
    """
    known = dict(settings.get("prompts", {}))
    for name in DOCUMENT_PROMPTS:
        if name in known:
            known.setdefault("document", known[name])
    prompts = known | prompts
    query, document = prompts.get("query", ""), prompts.get("document", "")
    default = "query" if query and query == document else settings.get("default_prompt")
    return (query, document), {"prompts": prompts, "default_prompt": default}


class SentenceVectors(Task):
    """Training of vectors of texts (Reimers & Gurevych 2019, 'Sentence-BERT').

    With scores, the texts' cosines are compared with them. Without, each anchor looks for its own
    second text among those of all examples.

    Args:
        settings: `VectorSettings`.
        prompts: the beginnings of anchors and of other texts, such as ("query: ", "passage: ").
        model_settings: kept in the model's folder, such as `prompts`; or None.
    """

    kind = EMBEDDER

    def __init__(self, settings=None, prompts=("", ""), model_settings=None):
        self.vectors = settings or VectorSettings()
        self.prompts = prompts
        self.settings = model_settings
        is_scored = self.vectors.loss in SCORED
        self.scores = SIMILARITY_SCORES if is_scored else RETRIEVAL_SCORES
        self.monitor = self.scores[0]
        self.compares_examples = self.vectors.loss in ("ranking", "cosent")
        self._loss = LOSSES[self.vectors.loss]
        if self.compares_examples:
            self._loss = functools.partial(self._loss, scale=self.vectors.scale)
        if self.vectors.symmetric:
            self._loss = functools.partial(self._loss, symmetric=True)

    def decisive(self):
        prompts = zip(("query_prompt", "document_prompt"), self.prompts, strict=True)
        return changed(self.vectors) | {name: prompt for name, prompt in prompts if prompt}

    def batch_model(self, model):
        """Return the model of groups of texts, (B, n, L) to vectors (B, n, D).

        Raises:
            InputError: for `matryoshka_dims` above D.
        """
        width, dims = model.output["embedding"].shape[-1], self.vectors.matryoshka_dims
        if max(dims, default=0) > width:
            raise InputError(
                f"matryoshka_dims={','.join(map(str, dims))} has more than the {width} dimensions "
                "of the model's vectors; give fewer."
            )
        shape = (self.vectors.num_texts, None)
        inputs = {name: keras.Input(shape, dtype="int32", name=name) for name in model.input}
        flat = {name: MergeChoices(name=f"merge_{name}")(x) for name, x in inputs.items()}
        vectors = model(flat)["embedding"]
        vectors = ops.reshape(vectors, (-1, shape[0], vectors.shape[-1]))
        return keras.Model(inputs, {"embedding": vectors})

    def encode(self, tokenizer, examples, max_length):
        anchor, other = self.prompts
        texts = [
            (other if i else anchor) + text
            for group in examples.texts
            for i, text in enumerate(group)
        ]
        encodings = tokenizer.encode(texts, max_length=max_length)
        scores = [0.0] * len(examples) if examples.scores is None else examples.scores
        low, high = RANGES.get(self.vectors.loss, (-np.inf, np.inf))
        if wrong := [score for score in scores if not low <= score <= high]:
            raise InputError(
                f"loss={self.vectors.loss} takes scores from {low} to {high}, not {wrong[0]:g}; "
                "give cosent, which takes any scale, or other scores."
            )
        return dataclasses.replace(encodings, choices=len(examples.texts[0])), scores

    def loss(self, labels, outputs, sample_weight=None):
        vectors, dims = outputs["embedding"], self.vectors.matryoshka_dims
        if not dims:
            return self._loss(vectors, labels, sample_weight)
        if vectors.shape[-1] not in dims:  # or nothing would train the last entries
            dims = *dims, vectors.shape[-1]
        return vector_losses.matryoshka_loss(self._loss, vectors, labels, sample_weight, dims=dims)

    def decode(self, examples, encodings, outputs):
        """Return the vectors of each example's texts, (n, D), of length 1."""
        return _unit(np.stack(outputs["embedding"]))

    def score_predictions(self, examples, predictions):
        return self._scores(examples, predictions) | {
            f"{name}_at_{dim}": value
            for dim in self.vectors.matryoshka_dims
            for name, value in self._scores(examples, _unit(predictions[..., :dim])).items()
            if name == self.monitor
        }

    def _scores(self, examples, vectors):
        if examples.scores is None:
            positives = [group[1] for group in examples.texts]
            return retrieval_scores(vectors[:, 0] @ vectors[:, 1].T, positives)
        cosines = (vectors[:, 0] * vectors[:, 1]).sum(-1)
        return correlations(cosines, examples.scores)

    def baseline(self, examples):
        """Return the scores of BM25 among the same texts; empty with scores to compare with."""
        if examples.scores is not None:
            return {}
        anchors, positives, *_ = zip(*examples.texts, strict=True)
        scores = bm25_scores([*anchors], [*positives])
        return {} if scores is None else retrieval_scores(scores, positives)


def _unit(vectors):
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
