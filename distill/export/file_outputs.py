"""Outputs of exported files, by the kind of the model."""

import tensorflow as tf

from tfnlp.models import reads_choices
from tfnlp.pipelines.keras_backend import POOLINGS, file_outputs
from tfnlp.tasks.kinds import kind_of
from tfnlp.utils.errors import InputError, unknown_name


def compute_outputs(kind, outputs, mask, pooling=None):
    """Return a file's outputs, {name: tensor (1, ...)}, from those of a model.

    Args:
        kind: the `tfnlp.tasks.kinds.Kind` of the model.
        outputs: {name: output of the model}.
        mask: (1, L), 0 at padding.
        pooling: of `POOLINGS`, for vectors of texts.
    """
    if pooling is not None:
        return {"embedding": _embedding(outputs["sequence_output"], mask, pooling)}
    return file_outputs(kind, outputs)


def _embedding(states, mask, pooling):
    """Pool states (1, L, D) to a vector of length 1, (1, D), without padding by mask (1, L)."""
    if pooling == "first":
        x = states[:, 0]
    else:
        mask = tf.cast(mask, states.dtype)[..., None]
        x = tf.reduce_sum(states * mask, axis=1) / tf.maximum(tf.reduce_sum(mask, axis=1), 1.0)
    return tf.math.l2_normalize(x, axis=-1)


def kind_of_file(model, pooling=None):
    """Return the `Kind` of the file that a model is exported to.

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
    kind = kind_of(model, pooling)
    if pooling and (reads_choices(model) or "sequence_output" not in model.output):
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
