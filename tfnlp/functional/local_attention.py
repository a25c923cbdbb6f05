"""Attention to near positions alone: with a mask, and by bands of the scores."""

from keras import ops

from tfnlp.functional.attention import Scores, fused_attention
from tfnlp.functional.masks import window_mask
from tfnlp.functional.products import plain_product
from tfnlp.functional.shapes import reshape

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
    if isinstance(length, int) and is_short(length, window):
        mask = with_window(mask, length, window)
        return fused_attention(scores.compute(product), value, mask, dropout, product)
    return banded_attention(scores, value, mask, dropout, product, window=window)


def is_short(length, window):
    """Return whether bands would have as many scores as all pairs of so many positions."""
    return length <= 3 * max(window, SMALLEST_BLOCK)


def banded_attention(scores, value, mask=None, dropout=None, product=plain_product, *, window):
    """Compute `local_attention` with 3 L * block scores in place of L * L.

    Queries are cut into blocks of at least `window`. Each is a text of its own, whose keys are
    those of the block and of its neighbours.
    """
    batch, heads, length, _ = ops.shape(scores.query)
    block = max(window, SMALLEST_BLOCK)
    if not isinstance(length, int) or length < block:
        block = ops.minimum(block, length)  # a short text is one block
    blocks = -(-length // block)
    near = Scores(_split(scores.query, blocks, block), _split_keys(scores.key, blocks, block))
    near_value = _split_keys(value, blocks, block)
    near_mask = _near_mask(mask, batch, (length, blocks, block), window)
    near_scores = near.compute(product)  # (B * blocks, N, block, 3 block)
    context = fused_attention(near_scores, near_value, near_mask, dropout, product)
    size = context.shape[-1]
    context = ops.reshape(context, (batch, blocks, heads, block, size))
    context = ops.reshape(
        ops.transpose(context, (0, 2, 1, 3, 4)), (batch, heads, blocks * block, size)
    )
    return ops.slice(context, (0, 0, 0, 0), (batch, heads, length, size))


def with_window(mask, length, window):
    """Return a mask of `combine_masks`, or None, without the keys that are farther away."""
    near = window_mask(length, window)  # (1, L, L)
    return near if mask is None else ops.logical_and(mask, near)


def _split(x, blocks, block):
    """Pad (B, N, L, H) to whole blocks, and return each as a text, (B * blocks, N, block, H)."""
    batch, heads, length, size = ops.shape(x)
    x = ops.pad(x, ((0, 0), (0, 0), (0, blocks * block - length), (0, 0)))
    return _as_texts(ops.reshape(x, (batch, heads, blocks, block, size)))


def _split_keys(x, blocks, block):
    """Return each block of (B, N, L, H) with its neighbours, (B * blocks, N, 3 block, H)."""
    return _as_texts(_with_neighbours(x, blocks, block))


def _as_texts(x):
    """Return (B, N, blocks, T, H) as (B * blocks, N, T, H)."""
    batch, heads, blocks, length, size = ops.shape(x)
    return reshape(ops.transpose(x, (0, 2, 1, 3, 4)), (batch * blocks, heads, length, size))


def _with_neighbours(x, blocks, block):
    """Return each block of (B, N, L, H) between its neighbours, (B, N, blocks, 3 block, H)."""
    batch, heads, length, size = ops.shape(x)
    x = ops.pad(x, ((0, 0), (0, 0), (block, (blocks + 1) * block - length), (0, 0)))
    x = ops.reshape(x, (batch, heads, blocks + 2, block, size))
    # `slice`, as TensorFlow has the gradient of a strided one on one core.
    shape = (batch, heads, blocks, block, size)
    return ops.concatenate([ops.slice(x, (0, 0, i, 0, 0), shape) for i in range(3)], axis=3)


def _near_mask(mask, batch, sizes, window):
    """Return which keys of its blocks a query may see, (B * blocks, N or 1, block, 3 block)."""
    length, blocks, block = sizes
    places = ops.arange(3 * block) - block  # of keys, from the start of a block
    near = ops.abs(ops.arange(block)[:, None] - places[None]) <= window
    keys = ops.arange(blocks)[:, None] * block + places[None]
    real = ops.logical_and(keys >= 0, keys < length)  # (blocks, 3 block)
    near = ops.logical_and(near[None], real[:, None])[None, None]
    if mask is not None:
        near = ops.logical_and(near, ops.cast(_bands(mask, sizes), "bool"))
    near = ops.broadcast_to(near, (batch, *ops.shape(near)[1:]))
    return _as_texts(near)


def _bands(mask, sizes):
    """Return the keys of each block of a mask of `combine_masks`, 1 where they may be seen.

    Returns:
        (B, N, blocks, block, 3 block) integers, as TFLite neither pads nor slices booleans; with
        1 in place of a size that the mask lacks.
    """
    length, blocks, block = sizes
    mask = mask if len(mask.shape) == 4 else ops.expand_dims(mask, 1)  # (B, N, T, S)
    batch, heads, rows, columns = ops.shape(mask)
    mask = ops.cast(mask, "int32")
    if isinstance(columns, int) and columns == 1:
        mask = ops.broadcast_to(mask, (batch, heads, rows, length))
    if isinstance(rows, int) and rows == 1:
        keys = _with_neighbours(ops.swapaxes(mask, 2, 3), blocks, block)
        return ops.swapaxes(keys, 3, 4)
    # Rows of a block begin one block further to the right than those of the block above: with as
    # many entries between two blocks, the bands of all begin at the same column.
    width, after = (blocks + 2) * block, (blocks + 1) * block - length
    mask = ops.pad(mask, ((0, 0), (0, 0), (0, blocks * block - length), (block, after)))
    flat = ops.reshape(mask, (batch, heads, blocks * block * width))
    flat = ops.pad(flat, ((0, 0), (0, 0), (0, blocks * block)))
    cut = ops.reshape(flat, (batch, heads, blocks, block * (width + 1)))
    cut = ops.slice(cut, (0, 0, 0, 0), (batch, heads, blocks, block * width))
    cut = ops.reshape(cut, (batch, heads, blocks, block, width))
    return ops.slice(cut, (0, 0, 0, 0, 0), (batch, heads, blocks, block, 3 * block))
