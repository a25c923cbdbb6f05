"""Sinusoids of relative positions (Transformer-XL), and their projection."""

from keras import ops

from tfnlp.functional.positions import sines_and_cosines


def relative_sinusoids(length, source_length, width, clamp_length=None, causal=False):
    """Compute the sinusoids of the distance from each query to each key.

    Args:
        length: T, the queries, which are the last T of the keys.
        source_length: S.
        width: D, even.
        clamp_length: the farthest distance that is told apart; any if None.
        causal: leave out keys after each query's own, all but one row of them.

    Returns:
        (R, D) float32, sines before cosines; and the (T + S - 1,) rows of it for each offset of
        a key from a query, the furthest behind first.
    """
    offsets = length + source_length - 1
    distances = source_length - 1 - ops.arange(offsets)
    rows = ops.arange(offsets)
    if causal:
        # One row past distance 0 is all the shift needs.
        distances, rows = distances[: source_length + 1], ops.minimum(rows, source_length)
    waves = sines_and_cosines(_clamped(distances, clamp_length), width)
    return ops.concatenate(waves, axis=-1), rows


def projected_sinusoids(length, source_length, kernel, clamp_length=None):
    """Compute `relative_sinusoids @ kernel`, of half as many rows, and their order.

    Sines are odd and cosines even, so one product of half the rows gives both directions.

    Args:
        length, source_length, clamp_length: as `relative_sinusoids` takes them.
        kernel: (D, units).

    Returns:
        (R, units), and the (T + S - 1,) rows of it for each offset of a key from a query.
    """
    distances = source_length - 1 - ops.arange(length + source_length - 1)
    count = _larger(length, source_length)
    kernel = ops.convert_to_tensor(kernel)
    waves = sines_and_cosines(_clamped(ops.arange(count), clamp_length), kernel.shape[0])
    sines, cosines = (ops.cast(x, kernel.dtype) for x in waves)
    # `split`, as the gradient of each half of a slice is a whole kernel.
    sine_kernel, cosine_kernel = ops.split(kernel, 2)
    by_sines, by_cosines = ops.matmul(sines, sine_kernel), ops.matmul(cosines, cosine_kernel)
    table = ops.concatenate([by_cosines + by_sines, by_cosines - by_sines], axis=0)
    return table, ops.where(distances < 0, count - distances, distances)


def _clamped(distances, clamp_length):
    return ops.clip(distances, -clamp_length, clamp_length) if clamp_length else distances


def _larger(a, b):
    """Return the larger of two lengths, either of which may be a tensor."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else ops.maximum(a, b)
