"""Signatures of a .tflite file: one for any length, and some for fixed lengths."""

import tensorflow as tf

from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import check_whole

# Default signature of runtimes: the one of any length, or the longest.
DEFAULT = "run"


def check_lengths(fixed_lengths, fixed_only, max_length):
    """Return the lengths of the signatures, the default's first; None is any length.

    Raises:
        InputError: if a length is no whole number between 3 and `max_length`, or if `fixed_only`
            leaves none.
    """
    for length in fixed_lengths:
        check_range(3, max_length, fixed_lengths=length)
    if fixed_only and not fixed_lengths:
        raise InputError("fixed_only=True leaves no signature; give `fixed_lengths`.")
    return [*([] if fixed_only else [None]), *sorted(set(fixed_lengths), reverse=True)]


def check_range(low, high, **numbers):
    """Raise an InputError for a keyword argument that is no whole number from `low` to `high`."""
    check_whole(**numbers)
    for name, value in numbers.items():
        if not low <= value <= high:
            raise InputError(f"{name}={value} must lie between {low} and {high}.")


def signatures(lengths):
    """Return the names of signatures and their lengths, {"run": None, "run_32": 32}.

    The converter sorts signatures by name. "run" comes first, and the metadata describes the
    first.
    """
    first, *others = lengths
    return {DEFAULT: first} | {f"{DEFAULT}_{length}": length for length in others}


def cut(inputs, max_length):
    """Truncate (1, L) inputs to `max_length` columns, keeping [SEP] as the last.

    If the text is longer, the last column is that of the last id that is not padding, since
    MediaPipe passes the whole text to models of any length.

    Args:
        inputs: a dict of `token_ids`, `segment_ids` and `padding_mask`.
        max_length: a whole number.
    """
    mask = inputs["padding_mask"]
    places = tf.range(tf.shape(mask)[1])
    last = tf.reduce_max(places * mask[0])
    places = places[:max_length]
    places = tf.where(places == max_length - 1, tf.maximum(last, places), places)
    return {key: tf.gather(x, places, axis=1) for key, x in inputs.items()}
