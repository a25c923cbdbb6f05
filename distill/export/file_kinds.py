"""Kinds of files of models that read texts: a line of `KINDS` is the export of a task."""

import collections.abc
import dataclasses

import tensorflow as tf
from keras import ops

from tfnlp.pipelines.keras_backend import POOLINGS, model_kind
from tfnlp.utils.errors import InputError, unknown_name


def _probabilities(outputs, mask, pooling):
    return {"probability": ops.softmax(outputs["logits"], axis=-1)}


def _scores(outputs, mask, pooling):
    return {"score": outputs["logits"]}


def _logits(outputs, mask, pooling):
    return outputs


def _embeddings(outputs, mask, pooling):
    """Pool states (1, L, D) to a vector of length 1, (1, D), without padding by mask (1, L)."""
    states = outputs["sequence_output"]
    if pooling == "first":
        x = states[:, 0]
    else:
        mask = tf.cast(mask, states.dtype)[..., None]
        x = tf.reduce_sum(states * mask, axis=1) / tf.maximum(tf.reduce_sum(mask, axis=1), 1.0)
    return {"embedding": tf.math.l2_normalize(x, axis=-1)}


@dataclasses.dataclass(frozen=True)
class FileKind:
    """Kind of files, of which the metadata tells.

    Args:
        description: of the model, in which {text} is what it reads and {labels} its classes.
        compute: function of {name: output of the model}, mask (1, L) and pooling to the file's
            outputs, {name: tensor (1, ...)}.
        outputs: {name: description} of these.
        reads: the names of the model's outputs that are computed with.
        labelled: whether the file holds the names of classes.
        in_mediapipe: whether MediaPipe has a task for it.
        pairs: whether it always or never reads pairs of texts; None where the training decides.
    """

    description: str
    compute: collections.abc.Callable
    outputs: dict
    reads: tuple = ("logits",)
    labelled: bool = False
    in_mediapipe: bool = False
    pairs: bool | None = None


KINDS = {
    "classifier": FileKind(
        "Classifies {text} as one of: {labels}.",
        _probabilities,
        {"probability": "The probability of each class."},
        labelled=True,
        in_mediapipe=True,
    ),
    "scorer": FileKind(
        "Gives {text} a score.", _scores, {"score": "The score of the text or pair."}
    ),
    "chooser": FileKind(
        "Gives an ending of a text a score, the best the highest.",
        _scores,
        {"score": "The score of the second text as the end of the first."},
        pairs=True,
    ),
    "tagger": FileKind(
        "Tags words as one of: {labels}.",
        _probabilities,
        {"probability": "The probability of each tag at each token."},
        labelled=True,
    ),
    "answerer": FileKind(
        "Finds the answer to a question in a text.",
        _logits,
        {
            "start_logits": "The logit of an answer that starts at each token.",
            "end_logits": "The logit of an answer that ends at each token.",
        },
        reads=("start_logits", "end_logits"),
        pairs=True,
    ),
    "embedder": FileKind(
        "Embeds a text as a vector; similar texts have a large dot product.",
        _embeddings,
        {"embedding": "The text as a vector of length 1."},
        reads=("sequence_output",),
        in_mediapipe=True,
        pairs=False,
    ),
}


def kind_of(model, pooling=None):
    """Return the kind of file that a model is exported to, a key of `KINDS`.

    Raises:
        InputError: if the model cannot be exported, or the pooling is unknown.
    """
    if pooling not in (None, *POOLINGS):
        raise unknown_name("pooling", pooling, POOLINGS)
    if getattr(model, "text_config", None) is None:
        raise InputError(
            "export_tflite needs a model of tfnlp.models.build_model or "
            f"tfnlp.checkpoints.load_model; this {type(model).__name__} has no text_config, so "
            "build one and set its weights, or give yours to its own `export(path, 'litert')`."
        )
    kind = model_kind(model, pooling)
    if kind not in KINDS:
        raise InputError(
            f"A model with the head {model.head!r} has no export; give `pooling`, such as "
            f"pooling={POOLINGS[0]!r}, for a file that gives texts as vectors, or a model with "
            "the head of a task (export_generator and export_translator take others)."
        )
    if pooling and model.head in ("chooser", "permutation_lm"):
        raise InputError(
            f"pooling={pooling!r} needs the states of one text, which the head {model.head!r} has "
            "not; load the model without a head."
        )
    surplus = sorted(set(model.input) - {"token_ids", "segment_ids", "padding_mask"})
    if surplus:
        raise InputError(
            f"{model.name} has the inputs {', '.join(surplus)} too, which a file has not; give "
            "one that reads no entities and no characters, or build it without memory=True."
        )
    return kind
