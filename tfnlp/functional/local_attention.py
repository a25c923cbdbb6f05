"""Attention to near positions alone: with a mask, and by bands of the scores."""

from keras import ops

from tfnlp.functional.attention import Scores, fused_attention
from tfnlp.functional.masks import window_mask
from tfnlp.functional.products import plain_product

# Queries in a block at least, as smaller products take no less time.
SMALLEST_BLOCK = 32


def local_attention(scores, value, mask=None, dropout=None, product=plain_product, *, window):
    """Compute `attention` of each query to the keys at most `window` positions away.

    The restricted self-attention of Vaswani et al. 2017 (section 4), the sliding window of
    Beltagy et al. 2020, 'Longformer' (section 3.1).

    Args:
        scores: `Scores` without terms, of as many keys as queries.
        value, mask, dropout, product: as `attention` takes them.
        window: the farthest distance of a key from its query.

    Returns:
        (B, N, L, H), zeros where a query may see nothing.
    """
    length = ops.shape(scores.query)[2]
    block = max(window, SMALLEST_BLOCK)
    if isinstance(length, int) and length <= 3 * block:  # bands would have as many scores
        mask = with_window(mask, length, window)
        return fused_attention(scores.compute(product), value, mask, dropout, product)
    return banded_attention(scores, value, mask, dropout, product, window=window)


def banded_attention(scores, value, mask=None, dropout=None, product=plain_product, *, window):
    """Compute `local_attention` with 3 L * block scores in place of L * L.

    Queries are cut into blocks of at least `window`, whose keys are those of the block itself and
    of its neighbours.
    """
    length = ops.shape(scores.query)[2]
    block = max(window, SMALLEST_BLOCK)
    if not isinstance(length, int) or length < block:
        block = ops.minimum(block, length)  # a short text is one block
    blocks = -(-length // block)
    near = Scores(_split(scores.query, blocks, block), _split_keys(scores.key, blocks, block))
    near_scores = near.compute(product)  # (B, N, blocks, block, 3 block)
    near_value = _split_keys(value, blocks, block)
    near_mask = _near_mask(mask, (length, blocks, block), window)
    context = fused_attention(near_scores, near_value, near_mask, dropout, product)
    batch, heads, *_, size = ops.shape(context)
    context = ops.reshape(context, (batch, heads, blocks * block, size))
    return ops.slice(context, (0, 0, 0, 0), (batch, heads, length, size))


def with_window(mask, length, window):
    """Return a mask of `combine_masks`, or None, without the keys that are farther away."""
    near = window_mask(length, window)  # (1, L, L)
    return near if mask is None else ops.logical_and(mask, near)


def _split(x, blocks, block):
    """Pad (B, N, L, H) to whole blocks, and split it into (B, N, blocks, block, H)."""
    batch, heads, length, size = ops.shape(x)
    x = ops.pad(x, ((0, 0), (0, 0), (0, blocks * block - length), (0, 0)))
    return ops.reshape(x, (batch, heads, blocks, block, size))


def _split_keys(x, blocks, block):
    """Return each block of (B, N, L, H) between its neighbours, (B, N, blocks, 3 block, H)."""
    batch, heads, length, size = ops.shape(x)
    x = ops.pad(x, ((0, 0), (0, 0), (block, (blocks + 1) * block - length), (0, 0)))
    x = ops.reshape(x, (batch, heads, blocks + 2, block, size))
    # `slice`, as TensorFlow has the gradient of a strided one on one core.
    shape = (batch, heads, blocks, block, size)
    return ops.concatenate([ops.slice(x, (0, 0, i, 0, 0), shape) for i in range(3)], axis=3)


def _near_mask(mask, sizes, window):
    """Return which keys of its blocks a query may see, (B, N, blocks, block, 3 block) or of 1."""
    length, blocks, block = sizes
    places = ops.arange(3 * block) - block  # of keys, from the start of a block
    near = ops.abs(ops.arange(block)[:, None] - places[None]) <= window
    keys = ops.arange(blocks)[:, None] * block + places[None]
    real = ops.logical_and(keys >= 0, keys < length)  # (blocks, 3 block)
    near = ops.logical_and(near[None], real[:, None])[None, None]
    if mask is None:
        return near
    mask = mask if len(mask.shape) == 4 else ops.expand_dims(mask, 1)  # (B, N, T, S)
    batch, heads, rows, columns = ops.shape(mask)
    # Numbers, as TFLite neither pads nor slices booleans.
    mask = ops.cast(mask, "int32")
    if isinstance(columns, int) and columns == 1:
        mask = ops.broadcast_to(mask, (batch, heads, rows, length))
    split = _split_row if isinstance(rows, int) and rows == 1 else _split_rows
    return ops.logical_and(near, ops.cast(split(mask, blocks, block), "bool"))


def _split_row(mask, blocks, block):
    """Return the keys of each block, (B, N, blocks, 1, 3 block), of a mask (B, N, 1, L)."""
    keys = _split_keys(ops.swapaxes(mask, 2, 3), blocks, block)
    return ops.swapaxes(keys, 3, 4)


def _split_rows(mask, blocks, block):
    """Return the band of a mask (B, N, L, L), (B, N, blocks, block, 3 block).

    Rows of a block begin one block further to the right than those of the block above: with as
    many entries between two blocks, the bands of all begin at the same column.
    """
    batch, heads, length, _ = ops.shape(mask)
    width = (blocks + 2) * block
    after = (blocks + 1) * block - length
    mask = ops.pad(mask, ((0, 0), (0, 0), (0, blocks * block - length), (block, after)))
    flat = ops.reshape(mask, (batch, heads, blocks * block * width))
    flat = ops.pad(flat, ((0, 0), (0, 0), (0, blocks * block)))
    rows = ops.reshape(flat, (batch, heads, blocks, block * (width + 1)))
    rows = ops.slice(rows, (0, 0, 0, 0), (batch, heads, blocks, block * width))
    rows = ops.reshape(rows, (batch, heads, blocks, block, width))
    return ops.slice(rows, (0, 0, 0, 0, 0), (batch, heads, blocks, block, 3 * block))
