"""Calibration: ranges of activations, observed on texts, for files of fixed ranges."""

import keras
from absl import logging

from distill.compression.file_quantization import QUANTIZATIONS
from tfnlp.layers.core.merged_weights import merged_weights
from tfnlp.models import reads_choices
from tfnlp.quantization.fake_quantization import (
    fake_quantize,
    get_ranges,
    has_products,
    leave_outliers_in_float,
    observing,
    weights_without_ranges,
)
from tfnlp.text import LengthBatches
from tfnlp.utils.errors import InputError

# Fewer texts do not cover the ranges of activations.
LEAST_TEXTS = 16


def check_calibration(name, model, texts):
    """Raise an InputError unless a model or texts, or None, give the ranges of a quantization.

    A recurrent model without dense layers to round is refused: its file would be that of "int8".
    """
    if not QUANTIZATIONS[name].static:
        if texts is not None:
            raise InputError(
                f"`calibration_text` is for quantization='static_int8', not {name!r}; leave it "
                "out."
            )
        return
    if not has_products(model):
        raise InputError(
            f"quantization={name!r} rounds inputs and outputs of dense layers and attention, and "
            f"a {model.name} model has none that is rounded; use int8."
        )
    # Ranges that were never updated all start at 0, and would round everything away.
    known = any(low < 0 for low, _ in get_ranges(model).values())
    count = LEAST_TEXTS if texts is None and known else len(texts or ())
    if count < LEAST_TEXTS:
        raise InputError(
            f"`calibration_text` holds {count} texts, but at least {LEAST_TEXTS} are needed for "
            "the ranges of activations; give more, or a model from quantisation-aware training."
        )


def in_columns(calibration_text):
    """Return strings as ([string, ...],), or (text, second text) pairs as two such lists.

    Raises:
        InputError: if strings and pairs are mixed, or a tuple is not a pair.
    """
    if all(isinstance(text, str) for text in calibration_text):
        return (list(calibration_text),)
    if any(isinstance(text, str) or len(text) != 2 for text in calibration_text):
        raise InputError(
            "`calibration_text` mixes strings and pairs, or holds tuples of other than two texts; "
            "give strings alone, or (text, second text) pairs alone."
        )
    return tuple(map(list, zip(*calibration_text, strict=True)))


def calibrate(model, encodings, pad_token_id=0, batch_size=16):
    """Return a copy of a model, fake-quantised with activation ranges calibrated on texts.

    Layers with outliers in their inputs or outputs get no fixed ranges. They are quantised at run
    time, as in "int8".

    Args:
        model: from `tfnlp.models`.
        encodings: `tfnlp.text.Encodings` of the texts.
        pad_token_id: of the tokenizer.
        batch_size: B.
    """
    copy = keras.models.clone_model(model)
    fake_quantize(copy)  # with fresh ranges, even if the model has some
    values = merged_weights(model)
    for weight in weights_without_ranges(copy):
        if weight.path in values:  # else of an adapter, merged
            weight.assign(values[weight.path])
    batches = LengthBatches(encodings, batch_size, pad_token_id=pad_token_id)
    sizes = {}
    with observing(copy, sizes):
        for indices in batches.batch_indices():
            inputs = batches.batch(indices)[0]
            if reads_choices(model):  # one choice a question
                inputs = {name: x[:, None] for name, x in inputs.items()}
            copy(inputs)
    logging.info("Calibrated %d ranges on %d texts.", len(get_ranges(copy)), len(encodings))
    if layers := leave_outliers_in_float(copy, sizes):
        logging.info(
            "Layers with outliers, which are quantised at run time as in int8: %s.",
            ", ".join(layers),
        )
    return copy
