"""The relative shift: from columns by offset to columns by key."""

import keras
from keras import ops


def relative_shift(x, source_length):
    """Turn columns by offset into columns by key.

    `output[..., i, j] = x[..., i, T - 1 - i + j]`: each row starts one column further left than
    the row before it (the shift of Dai et al. 2019, 'Transformer-XL', appendix B). Forward it
    is two slices of memory, and backward two pads.

    Args:
        x: (..., T, W), a column for every offset of a key from a query, the furthest behind
            first; W at least T + S - 1, and at least S + 1. W = S + 1 is enough for causal
            attention: entries right of the last query's diagonal are not meaningful then.
        source_length: S.

    Returns:
        (..., T, S).
    """

    @ops.custom_gradient
    def shift(x):
        rows, width = ops.shape(x)[-2:]

        def gradient(*args, upstream=None):
            return unshift(args[0] if upstream is None else upstream, rows, width)

        leading = ops.shape(x)[:-2]
        output = shift_rows(x, rows, width, source_length)
        return ops.reshape(output, (*leading, rows, source_length)), gradient

    return shift(x)


def shift_rows(x, rows, width, source_length):
    """Apply `relative_shift` to (..., rows, width): (`leading_axes`, rows, source_length)."""
    leading = leading_axes(x)
    x = ops.reshape(x, (*leading, 1, rows * width))
    start = (0,) * len(leading) + (0, rows - 1)
    # `slice` copies whole rows, where TFLite copies strided slices entry by entry.
    x = ops.slice(x, start, (*ops.shape(x)[:-2], 1, rows * (width - 1)))
    x = ops.reshape(x, (*leading, rows, width - 1))
    return ops.slice(x, (0,) * len(x.shape), (*ops.shape(x)[:-2], rows, source_length))


def unshift(x, rows, width):
    """Compute the gradient of `relative_shift`."""
    *axes, _, source_length = ops.shape(x)
    leading = leading_axes(x)
    before = ((0, 0),) * len(leading)
    x = ops.reshape(x, (*leading, rows, source_length))
    x = ops.pad(x, (*before, (0, 0), (0, width - 1 - source_length)))
    x = ops.reshape(x, (*leading, 1, rows * (width - 1)))
    x = ops.pad(x, (*before, (0, 0), (rows - 1, 1)))
    return ops.reshape(x, (*axes, rows, width))


def leading_axes(x):
    """Return the axes before the last two, which on TensorFlow are one.

    TensorFlow copies slices and pads of matrices on one core, and those of three axes on all. On
    JAX batch and heads may be split over devices, and XLA would gather them to make them one.
    """
    return ops.shape(x)[:-2] if keras.backend.backend() == "jax" else (-1,)
