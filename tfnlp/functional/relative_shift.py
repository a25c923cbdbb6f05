"""The relative shift: from columns by offset to columns by key."""

from keras import ops


def relative_shift(x, source_length):
    """Turn columns by offset into columns by key.

    `output[..., i, j] = x[..., i, T - 1 - i + j]`: each row starts one column further left than
    the row before it (the shift of Dai et al. 2019, 'Transformer-XL', appendix B). Forward it
    is two slices of memory, and backward two pads.

    Args:
        x: (..., T, W), a column for every offset of a key from a query, the furthest behind
            first; W at least T + S - 1. W = S + 1 is enough for causal attention: entries
            right of the last query's diagonal are not meaningful then.
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
    """Apply `relative_shift` to (..., rows, width): (product of ..., rows, source_length)."""
    # `slice`, and of three axes: TFLite copies strided slices entry by entry, and TensorFlow
    # copies slices and pads of matrices on one core.
    x = ops.reshape(x, (-1, 1, rows * width))
    x = ops.slice(x, (0, 0, rows - 1), (ops.shape(x)[0], 1, rows * (width - 1)))
    x = ops.reshape(x, (-1, rows, width - 1))
    return ops.slice(x, (0, 0, 0), (ops.shape(x)[0], rows, source_length))


def unshift(x, rows, width):
    """Compute the gradient of `relative_shift`."""
    *leading, _, source_length = ops.shape(x)
    x = ops.reshape(x, (-1, rows, source_length))
    x = ops.pad(x, ((0, 0), (0, 0), (0, width - 1 - source_length)))
    x = ops.pad(ops.reshape(x, (-1, 1, rows * (width - 1))), ((0, 0), (0, 0), (rows - 1, 1)))
    return ops.reshape(x, (*leading, rows, width))
