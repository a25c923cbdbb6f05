"""Inference with fine-tuned Keras models, for each task.

`distill.runtime` has the same for exported files, with the same methods.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from tfnlp.checkpoints import (
    load_model,
    read_head,
    read_labels,
    read_task_settings,
    unnamed_labels,
)
from tfnlp.functional.links import LINKS
from tfnlp.knowledge import load_entity_tokenizer
from tfnlp.models import check_vocabulary, num_classes, reads_choices
from tfnlp.pipelines.pipeline import pipeline_of
from tfnlp.tasks.kinds import (
    EMBEDDER,
    TASK_HEADS,
    TOKEN_EMBEDDER,
    kind_of,
    kind_of_head,
    named_head,
)
from tfnlp.text import Encodings, LengthBatches
from tfnlp.training.run.inference import predictor
from tfnlp.utils.errors import InputError

# Default maximum length; longer inputs are read in windows, or truncated.
LONGEST = 512


class KerasBackend:
    """Keras model with its tokenizer, as a backend of `tfnlp.pipelines.pipeline`.

    Args:
        model: from `tfnlp.checkpoints.load_model`, with a head of a task.
        tokenizer: the model's.
        labels: of a classifier or tagger, in order of their ids; LABEL_0, LABEL_1, ... where
            None.
        settings: a task's `settings` that the model was trained with; or None. Its `max_length`,
            the most tokens of an input, is by default the number of the model's positions, at
            most 512.
        batch_size: inputs in a batch; inputs of similar length share a batch.
        kind: `TOKEN_EMBEDDER` for an embedder that gives the vectors of tokens too; else None.

    Raises:
        InputError: if the tokenizer is not the model's.
    """

    def __init__(self, model, tokenizer, labels=None, settings=None, *, batch_size=32, kind=None):
        check_vocabulary(tokenizer, model)
        self.kind = kind or kind_of(model)
        self.tokenizer = tokenizer
        self.labels = labels
        if labels is None and self.kind.labelled:
            self.labels = unnamed_labels(num_classes(model))
        self.settings = settings or {}
        positions = model.text_config.max_length or LONGEST
        self.max_length = self.settings.get("max_length", min(positions, LONGEST))
        self.batch_size = batch_size
        self._predict = predictor(model, self.kind.reads)
        self._by_ending = reads_choices(model)

    def run(self, encodings):
        """Return the outputs for each encoding, {name: array}, named as in an exported file."""
        rows = Encodings.from_list(encodings)
        if not len(rows):
            return []
        if self._by_ending:  # score endings separately, to allow any number
            rows = dataclasses.replace(rows, choices=1)
        pad = self.tokenizer.pad_token_id
        outputs = self._predict(LengthBatches(rows, self.batch_size, pad_token_id=pad))
        return [
            self._as_exported(dict(zip(outputs, row, strict=True)))
            for row in zip(*outputs.values(), strict=True)
        ]

    def _as_exported(self, outputs):
        """Convert the model's outputs for one encoding to those of an exported file."""
        outputs = file_outputs(self.kind, {name: value[None] for name, value in outputs.items()})
        return {name: np.asarray(value[0]) for name, value in outputs.items()}


def file_outputs(kind, outputs):
    """Return the outputs of an exported file, {name: values}, from those of a model.

    Args:
        kind: the `tfnlp.tasks.kinds.Kind` of the model.
        outputs: {name: values (B, ...)}.
    """
    if kind in (EMBEDDER, TOKEN_EMBEDDER):  # also of a model whose vectors have other lengths
        rows = zip(kind.outputs, (outputs[name] for name in kind.reads), strict=True)
        return {name: tf.math.l2_normalize(value, axis=-1) for name, value in rows}
    if "probability" in kind.outputs:
        return {"probability": LINKS[kind.link].probability(outputs["logits"])}
    return dict(zip(kind.outputs, (outputs[name] for name in kind.reads), strict=True))


def load_runner(folder, batch_size=32, tokens=False):
    """Return the `Pipeline` of a fine-tuned model in a folder, such as the `best` of a run.

    Args:
        folder: as in `load_model`.
        batch_size: as in `KerasBackend`.
        tokens: whether an embedder gives the vectors of tokens too, as a `TokenEmbedder`.

    Raises:
        InputError: as `load_model`, and if the model's head has no task.
    """
    kind = read_kind(folder)  # fails before the model is loaded
    model = load_model(folder, read_head(folder))
    settings = read_labels(folder), read_task_settings(folder)
    options = {"batch_size": batch_size}
    if tokens and kind == EMBEDDER:
        options["kind"] = TOKEN_EMBEDDER
    backend = KerasBackend(model, load_entity_tokenizer(folder), *settings, **options)
    return pipeline_of(backend)


def read_kind(folder):
    """Return the `Kind` of a folder's model.

    Raises:
        InputError: if its head has no task.
    """
    head, labels = read_head(folder), read_labels(folder)
    if head not in TASK_HEADS:
        raise InputError(
            f"{folder} holds {named_head(head)}, which gives no answers to texts; "
            f"fine-tune it first, to one of {', '.join(TASK_HEADS)}."
        )
    return kind_of_head(head, None if labels is None else len(labels))
