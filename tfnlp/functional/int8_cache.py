"""Attention over cached keys and values in int8, with a scale for each head and position."""

from typing import NamedTuple

from keras import ops

from tfnlp.functional.products import times_transposed

# Divisor of the second part of a factor of 16 bits, whose rounding errors are at most 1/2.
LEVELS = 254


class Int8Cache(NamedTuple):
    """Keys, or values, as integers of 8 bits times scales.

    Args:
        codes: int8, (B, N, C, H) of keys; (B, N, H, C) of values, as LiteRT multiplies by rows.
        scales: (B, N, 1, C) float32, of the numbers at each position.
    """

    codes: object
    scales: object

    @property
    def shape(self):
        """The shape of the codes."""
        return self.codes.shape

    def put(self, x, place, is_value=False):
        """Return the cache with keys or values (B, N, T, H) rounded at the places from `place`."""
        scales = ops.max(ops.abs(x), axis=-1, keepdims=True) / 127 + 1e-12
        codes = ops.cast(ops.round(x / scales), "int8")
        codes = ops.swapaxes(codes, -1, -2) if is_value else codes
        start = (0, 0, 0, place) if is_value else (0, 0, place, 0)
        return Int8Cache(
            ops.slice_update(self.codes, start, codes),
            ops.slice_update(self.scales, (0, 0, 0, place), ops.swapaxes(scales, -1, -2)),
        )


def int8_product(name, compute=None, **factors):
    """Return the product of a query with cached keys, or of weights with cached values.

    It is a product as `plain_product`, of an attention whose cache is an `Int8Cache`.
    """
    if name == "scores":
        query, cache = factors.values()
        return _times(query, cache.codes) * cache.scales
    weights, cache = factors.values()
    return _times(weights * cache.scales, cache.codes)


def _times(x, codes):
    """Compute `x . codes^T`, (B, N, T, S), for x (B, N, T, K) and int8 codes (B, N, S, K)."""
    if x.shape[2] > 1:
        # LiteRT's product of integers is slow with several rows.
        return times_transposed(x, ops.cast(codes, "float32"))
    scale = ops.max(ops.abs(x), axis=-1, keepdims=True) / 127 + 1e-12
    x = x / scale
    # 8 bits would lose the many small weights beside a large one: two rows of them have 16.
    high = ops.round(x)
    rows = ops.concatenate([high, ops.round((x - high) * LEVELS)], axis=2)
    sums = times_transposed(ops.cast(rows, "int8"), codes)
    high, low = ops.split(ops.cast(sums, "float32"), 2, axis=2)
    return scale * (high + low / LEVELS)
