"""The signatures of a .tflite file: one that takes any length, and some of fixed lengths."""

import tensorflow as tf

from tfnlp.errors import InputError
from tfnlp.text.texts import check_whole

# What a runtime takes that does not choose: the one of any length, or the longest.
DEFAULT = "run"


def check_lengths(fixed_lengths, fixed_only, max_length):
    """The lengths to have a signature each, the default's first; None is any length.

    Raises:
        InputError: for lengths that are no whole numbers between 3 and `max_length`, or there
            twice, and where `fixed_only` leaves none.
    """
    fixed_lengths = list(fixed_lengths)
    for length in fixed_lengths:
        check_whole(fixed_lengths=length)
        if not 3 <= length <= max_length:
            raise InputError(
                f"fixed_lengths={length} must lie between 3 and max_length={max_length}."
            )
        if fixed_lengths.count(length) > 1:
            raise InputError(f"fixed_lengths={length} is there twice; name each length once.")
    fixed_lengths.sort(reverse=True)
    if not fixed_only:
        return [None, *fixed_lengths]
    if not fixed_lengths:
        raise InputError("fixed_only=True leaves no signature; give `fixed_lengths`.")
    return fixed_lengths


def signatures(lengths):
    """The names of signatures and their lengths, {"run": None, "run_32": 32}.

    The converter puts them in the order of their names, in which "run" is the first, which
    the metadata is of.
    """
    first, *others = lengths
    return {DEFAULT: first} | {f"{DEFAULT}_{length}": length for length in others}


def cut(inputs, max_length):
    """The first `max_length` columns of (1, L) inputs, the last of them that of [SEP].

    Where the text is longer, the last column is that of the last id that is no padding, since
    MediaPipe gives models of any length the whole text.

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
