"""Attention masks: boolean in, finite additive bias out."""

from keras import ops
from keras.src.backend import set_keras_mask  # not public, and there is no other way

# Far below any score yet finite in float32, the type that every softmax here runs in.
MASKED = -1e9


def combine_masks(
    query_shape,
    key_shape,
    attention_mask=None,
    query_mask=None,
    key_mask=None,
    name="attention_mask",
    num_heads=1,
):
    """Combine masks into one boolean mask that broadcasts to (B, T, S) or (B, N, T, S), or None.

    Args:
        query_shape: shape of the queries, (B, T, D); None for a length not known yet.
        key_shape: shape of the keys, (B, S, D).
        attention_mask: (B, T, S), (B, 1, S), (T, S), or (B, N, T, S) for each head, all of which
            may have a 1 in place of a size; true or non-zero where T may see S.
        query_mask: (B, T), as Keras passes it on.
        key_mask: (B, S), true at real positions.
        name: what errors call `attention_mask`.
        num_heads: N.

    Raises:
        ValueError: for a mask whose sizes are not those of the scores.
    """
    batch, length, source_length = *query_shape[:2], key_shape[1]
    mask = None
    if attention_mask is not None:
        axes = len(attention_mask.shape)
        due = (batch, num_heads, length, source_length)
        due = due if axes == 4 else (batch, length, source_length)[axes == 2 :]
        _check_mask(name, attention_mask, due)
        mask = ops.cast(attention_mask, "bool")
        if axes == 2:
            mask = ops.expand_dims(mask, 0)
        if axes == 4 and mask.shape[1] == 1:
            mask = ops.squeeze(mask, 1)
    by_head = mask is not None and len(mask.shape) == 4
    for padding, padding_name, size, axis in (
        (key_mask, "key_mask", source_length, -2),
        (query_mask, "query_mask", length, -1),
    ):
        if padding is not None:
            _check_mask(padding_name, padding, (batch, size))
            # `expand_dims`: TFLite has no strided slices of booleans, which indices would be.
            padding = ops.expand_dims(ops.cast(padding, "bool"), axis)
            padding = ops.expand_dims(padding, 1) if by_head else padding
            mask = padding if mask is None else ops.logical_and(mask, padding)
    return mask


def additive_mask(mask, axes=4):
    """Return 0 where a mask is true, else MASKED, float32; with an axis of heads if due."""
    added = ops.where(mask, 0.0, MASKED)
    return added if len(mask.shape) == axes else ops.expand_dims(added, 1)


def zero_masked_rows(x, mask):
    """Set `x`, (B, N, T, ...) or (B, T, ...), to zero for queries whose keys are all masked."""
    if mask is None:
        return x
    has_keys = ops.any(mask, axis=-1, keepdims=True)
    has_keys = has_keys if len(mask.shape) == len(x.shape) else ops.expand_dims(has_keys, 1)
    return x * ops.cast(has_keys, x.dtype)


def causal_mask(target_length, source_length):
    """Return a causal mask, (1, T, S) boolean: the last query sees up to the last key."""
    rows = ops.arange(target_length)[None, :, None] + (source_length - target_length)
    return ops.arange(source_length)[None, None, :] <= rows


def window_mask(length, window):
    """Return a (1, L, L) boolean mask, true where positions are at most `window` apart."""
    positions = ops.arange(length)[None]  # here, as slices of all pairs cost a file time
    return ops.abs(positions[:, :, None] - positions[:, None, :]) <= window


def padding_mask(token_ids, pad_token_id=0):
    """Return the padding mask, (B, L) boolean: true at real tokens."""
    return ops.not_equal(token_ids, pad_token_id)


def segment_mask(query_segments, key_segments):
    """Return a (B, T, S) boolean mask, true where query and key are of one segment.

    Yang et al. 2019, 'XLNet', section 2.5: attention tells only whether two positions are of
    the same segment, not of which.

    Args:
        query_segments: (B, T) integers.
        key_segments: (B, S) integers.
    """
    return ops.equal(query_segments[:, :, None], key_segments[:, None, :])


def document_numbers(positions):
    """Return the number of each token's document in its row, from 1 on: (B, L) int32.

    Args:
        positions: (B, L) integers, the position of each token within its document: 0 is a start.
    """
    return ops.cumsum(ops.cast(ops.equal(positions, 0), "int32"), axis=1)


def permutation_masks(order, key_order=None):
    """Return the attention masks of XLNet's two streams under a factorization order.

    Yang et al. 2019, 'XLNet', eq. 4: a position's content sees itself and what comes before it
    in the order; its query sees only what comes before.

    Args:
        order: (B, L) integers, the rank of each position in the factorization order.
        key_order: (B, S), the ranks of what may be seen, where that is more; `order` where
            None.

    Returns:
        Two boolean masks (B, L, S): for the content stream and for the query stream.
    """
    query = order[:, :, None]
    key = (order if key_order is None else key_order)[:, None, :]
    return ops.less_equal(key, query), ops.less(key, query)


def with_memory(mask, memory_length):
    """Prepend `memory_length` visible positions to a mask (..., S)."""
    mask = ops.cast(mask, "bool")
    visible = ops.ones((*ops.shape(mask)[:-1], memory_length), dtype="bool")
    return ops.concatenate([visible, mask], axis=-1)


def set_mask(x, mask):
    """Attach a Keras mask (B, L) to `x` and return it; None leaves `x` unchanged.

    This is for masks that `compute_mask` cannot compute, as it gets the first input alone.
    """
    if mask is not None:
        set_keras_mask(x, mask)
    return x


def _check_mask(name, mask, due):
    """Raise a ValueError unless a mask is of the sizes that are due, or has 1 for one."""
    shape = tuple(mask.shape)
    fits = (
        size in (1, None) or other in (size, None) for size, other in zip(shape, due, strict=False)
    )
    if len(shape) != len(due) or not all(fits):
        raise ValueError(
            f"{name} has shape {shape}, but must be {due}, or have 1 for a size; give a mask of "
            "the tokens of each text as (batch, 1, source)."
        )


def masked_mean(inputs, padding_mask=None):
    """Return the mean (B, D) of the states (B, L, D) of each row's real tokens.

    Args:
        inputs: states; the mean is taken in float32.
        padding_mask: (B, L), 1 at real tokens; all are real where None. A row without any gives
            zeros.
    """
    x = ops.cast(inputs, "float32")
    real = ops.ones_like(x[:, :, :1])
    if padding_mask is not None:
        # Not `[..., None]`, which TFLite lacks for an unknown length.
        real = ops.expand_dims(ops.cast(padding_mask, "float32"), -1)  # (B, L, 1)
    return ops.sum(x * real, axis=1) / ops.maximum(ops.sum(real, axis=1), 1)
