"""Inference with fine-tuned Keras models, for each task.

`distill.runtime` has the same for exported files, with the same methods.
"""

import dataclasses

import numpy as np
from scipy.special import softmax

from tfnlp.checkpoints import load_model, read_head, read_labels, read_task_settings
from tfnlp.knowledge import load_entity_tokenizer
from tfnlp.models import check_vocabulary
from tfnlp.pipelines.pipeline import PIPELINES, pipeline_of
from tfnlp.text import Encodings, LengthBatches
from tfnlp.training.inference import predictor
from tfnlp.utils.errors import InputError, unknown_name

# Default maximum length; longer inputs are read in windows, or truncated.
LONGEST = 512
POOLINGS = ("mean", "first")
# Model outputs of kinds that do not use logits.
OUTPUTS = {"answerer": ("start_logits", "end_logits"), "embedder": ("sequence_output",)}


class KerasBackend:
    """Keras model with its tokenizer, as a backend of `tfnlp.pipelines.pipeline`.

    Args:
        model: from `tfnlp.checkpoints.load_model`, with a head, or `sequence_output` for
            `pooling`.
        tokenizer: the model's.
        labels: of a classifier or tagger, in order of their ids; LABEL_0, LABEL_1, ... where
            None.
        settings: a task's `settings` that the model was trained with; or None. Its `max_length`,
            the most tokens of an input, is by default the number of the model's positions, at
            most 512.
        batch_size: inputs in a batch; inputs of similar length share a batch.
        pooling: "mean" of the tokens' states, or the "first" one, for an embedder; or None.

    Raises:
        InputError: if the tokenizer is not the model's, or the pooling is unknown.
    """

    def __init__(
        self, model, tokenizer, labels=None, settings=None, *, batch_size=32, pooling=None
    ):
        check_vocabulary(tokenizer, model)
        if pooling not in (None, *POOLINGS):
            raise unknown_name("pooling", pooling, POOLINGS)
        self.kind = model_kind(model, pooling)
        self.tokenizer = tokenizer
        self.labels = labels
        if labels is None and self.kind in ("classifier", "tagger"):
            self.labels = [f"LABEL_{i}" for i in range(model.output["logits"].shape[-1])]
        self.settings = settings or {}
        positions = model.text_config.max_length or LONGEST
        self.max_length = self.settings.get("max_length", min(positions, LONGEST))
        self.batch_size = batch_size
        self.pooling = pooling
        self._predict = predictor(model, OUTPUTS.get(self.kind, ("logits",)))

    def run(self, encodings):
        """Return the outputs for each encoding, {name: array}, named as in an exported file."""
        rows = Encodings.from_list(encodings)
        if not len(rows):
            return []
        if self.kind == "chooser":  # score endings separately, to allow any number
            rows = dataclasses.replace(rows, choices=1)
        pad = self.tokenizer.pad_token_id
        outputs = self._predict(LengthBatches(rows, self.batch_size, pad_token_id=pad))
        return [
            self._as_exported(dict(zip(outputs, row, strict=True)))
            for row in zip(*outputs.values(), strict=True)
        ]

    def _as_exported(self, outputs):
        """Convert the model's outputs for one encoding to those of an exported file."""
        if self.kind == "answerer":
            return outputs
        if self.kind == "embedder":
            return {"embedding": pool(outputs["sequence_output"], self.pooling)}
        if self.kind in ("classifier", "tagger"):
            return {"probability": softmax(outputs["logits"], -1)}
        return {"score": outputs["logits"]}


def pool(states, pooling):
    """Pool states (L, D) to a vector (D,) of length 1; of zeros if there are no states."""
    vector = (states[:1] if pooling == "first" else states).sum(0)
    return vector / max(np.linalg.norm(vector), 1e-12)


def model_kind(model, pooling=None):
    """Return the task kind of a model: its head's, "scorer" for one number, or "embedder"."""
    if pooling is not None:
        return "embedder"
    if model.head == "classifier" and model.output["logits"].shape[-1] == 1:
        return "scorer"
    return model.head


def load_runner(folder, batch_size=32):
    """Return the `Pipeline` of a fine-tuned model in a folder, such as the `best` of a run.

    Raises:
        InputError: as `load_model`, and if the model's head has no task.
    """
    read_kind(folder)  # fails before the model is loaded
    model = load_model(folder, read_head(folder))
    settings = read_labels(folder), read_task_settings(folder)
    backend = KerasBackend(model, load_entity_tokenizer(folder), *settings, batch_size=batch_size)
    return pipeline_of(backend)


def read_kind(folder):
    """Return the task kind of a folder's model, a key of `PIPELINES`.

    Raises:
        InputError: if its head has no task.
    """
    head, labels = read_head(folder), read_labels(folder)
    if head == "classifier" and labels is not None and len(labels) == 1:
        return "scorer"
    if head not in PIPELINES:
        raise InputError(
            f"{folder} holds a model with the head {head!r}, which gives no answers to texts; "
            f"fine-tune it first, to one of {', '.join(k for k in PIPELINES if k != 'embedder')}."
        )
    return head
