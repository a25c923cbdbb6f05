"""Inference with fine-tuned Keras models, for each task.

`distill.runtime` has the same for exported files, with the same methods.
"""

import dataclasses

import numpy as np
from scipy.special import softmax

from tfnlp.checkpoints import load_model, read_head, read_labels, read_task_settings
from tfnlp.models import check_vocabulary
from tfnlp.pipelines.base_runners import Answerer, Chooser, Classifier, Embedder, Scorer, Tagger
from tfnlp.text import Encodings, LengthBatches, load_tokenizer
from tfnlp.training.inference import predictor
from tfnlp.utils.errors import InputError, unknown_name

# Default maximum length; longer inputs are read in windows, or truncated.
LONGEST = 512
# Model outputs of kinds that do not use logits.
OUTPUTS = {"answerer": ("start_logits", "end_logits"), "embedder": ("sequence_output",)}


class ModelRunner:
    """Mixin with a model and its tokenizer, for the classes below.

    Args:
        model: from `tfnlp.checkpoints.load_model`, with the head of the class.
        tokenizer: the model's.
        labels: of a classifier or tagger, in order of their ids; LABEL_0, LABEL_1, ... where
            None.
        settings: a task's `settings` that the model was trained with; or None.
        max_length: the most tokens of an input. Where None, that of `settings`, else the number of
            the model's positions, at most 512.
        batch_size: inputs in a batch; inputs of similar length share a batch.
    """

    def __init__(
        self, model, tokenizer, labels=None, settings=None, max_length=None, batch_size=32
    ):
        check_vocabulary(tokenizer, model)
        self.tokenizer = tokenizer
        self.labels = labels
        if labels is None and self.kind in ("classifier", "tagger"):
            self.labels = [f"LABEL_{i}" for i in range(model.output["logits"].shape[-1])]
        self.settings = settings or {}
        positions = model.text_config.max_length or LONGEST
        self.max_length = max_length or self.settings.get("max_length", min(positions, LONGEST))
        self.batch_size = batch_size
        self._predict = predictor(model, OUTPUTS.get(self.kind, ("logits",)))

    def outputs_of(self, encodings):
        """Return the outputs for each encoding, {name: array}, in the form of an exported file."""
        rows = Encodings.from_list(encodings)
        if not len(rows):
            return []
        if self.kind == "chooser":  # score endings separately, to allow any number
            rows = dataclasses.replace(rows, choices=1)
        pad = self.tokenizer.pad_token_id
        found = self._predict(LengthBatches(rows, self.batch_size, pad_token_id=pad))
        if self.kind in ("classifier", "tagger"):
            found = {"probability": [softmax(logits, -1) for logits in found["logits"]]}
        elif self.kind not in OUTPUTS:
            found = {"score": found["logits"]}
        return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]


class ModelClassifier(Classifier, ModelRunner):
    """Text classification; arguments as in `ModelRunner`."""


class ModelTagger(Tagger, ModelRunner):
    """Token classification and entities; arguments as in `ModelRunner`."""


class ModelAnswerer(Answerer, ModelRunner):
    """Question answering; arguments as in `ModelRunner`."""


class ModelScorer(Scorer, ModelRunner):
    """Regression; arguments as in `ModelRunner`."""


class ModelChooser(Chooser, ModelRunner):
    """Multiple choice; arguments as in `ModelRunner`."""


class ModelEmbedder(Embedder, ModelRunner):
    """Text embeddings of length 1; further arguments as in `ModelRunner`.

    Args:
        model: returns `sequence_output`.
        tokenizer: the model's.
        pooling: "mean" of the tokens' states, or the "first" one.
    """

    def __init__(self, model, tokenizer, pooling="mean", **kwargs):
        if pooling not in ("mean", "first"):
            raise unknown_name("pooling", pooling, ("mean", "first"))
        super().__init__(model, tokenizer, **kwargs)
        self.pooling = pooling

    def outputs_of(self, encodings):
        rows = []
        for outputs in super().outputs_of(encodings):
            states = outputs["sequence_output"]  # (L, D)
            # As an exported file: zeros for a text without tokens, which some tokenizers allow.
            vector = (states[:1] if self.pooling == "first" else states).sum(0)
            rows.append({"embedding": vector / max(np.linalg.norm(vector), 1e-12)})
        return rows


CLASSES = {
    "classifier": ModelClassifier,
    "tagger": ModelTagger,
    "answerer": ModelAnswerer,
    "scorer": ModelScorer,
    "chooser": ModelChooser,
}


def load_runner(folder, batch_size=32):
    """Load the model of a folder for inference.

    Args:
        folder: of a fine-tuned model, such as the `best` of a run.
        batch_size: inputs in a batch.

    Returns:
        One of `CLASSES`, by the folder's `kind`: it has `classify`, `tag` and `entities`,
        `answer`, `score` or `choose`.

    Raises:
        InputError: as `load_model`, and if the model's head has no class.
    """
    kind = read_kind(folder)
    return CLASSES[kind](
        load_model(folder, read_head(folder)),
        load_tokenizer(folder),
        read_labels(folder),
        read_task_settings(folder),
        batch_size=batch_size,
    )


def read_kind(folder):
    """Return the task kind of a folder's model, a key of `CLASSES`.

    Raises:
        InputError: if its head has no class.
    """
    head, labels = read_head(folder), read_labels(folder)
    if head == "classifier" and labels is not None and len(labels) == 1:
        return "scorer"
    if head not in CLASSES:
        raise InputError(
            f"{folder} holds a model with the head {head!r}, which gives no answers to texts; "
            f"fine-tune it first, to one of {', '.join(CLASSES)}."
        )
    return head
