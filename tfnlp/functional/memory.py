"""The memory of earlier positions that Transformer-XL and XLNet attend to."""

from keras import ops

from tfnlp.functional.masks import with_memory
from tfnlp.functional.shapes import check_sizes


def update_memory(memory, states, memory_length=None, reuse_length=None):
    """Return the last `memory_length` positions of memory and states, without gradient.

    Dai et al. 2019, 'Transformer-XL', section 3.2: SG(h). XLNet keeps only the part of a
    segment that the next one does not read again.

    Args:
        memory: (B, M, D), or None before the first segment.
        states: (B, L, D), a layer's inputs in this segment.
        memory_length: the most positions to keep; all if None.
        reuse_length: keep only the first positions of `states`; all if None.

    Returns:
        (B, at most `memory_length`, D).

    Raises:
        ValueError: if `memory_length` is below 1.
    """
    check_sizes(memory_length=memory_length)
    if reuse_length is not None:
        states = states[:, :reuse_length]
    if memory is not None:
        states = ops.concatenate([memory, states], axis=1)
    if memory_length is not None:
        states = states[:, -memory_length:]
    return ops.stop_gradient(states)


def prepend_memory(memory, key, value, key_mask=None):
    """Prepend a memory, which all queries may see, to key, value and their Keras mask.

    Args:
        memory: (B, M, D), to which no gradient goes; None for none.
        key: (B, L, D).
        value: (B, L, D), or the key itself.
        key_mask: (B, L), or None.

    Returns:
        Key and value (B, M + L, D), and the mask (B, M + L) or None.
    """
    if memory is None:
        return key, value, key_mask
    memory = ops.stop_gradient(memory)
    if key_mask is not None:
        key_mask = with_memory(key_mask, ops.shape(memory)[1])
    joined = ops.concatenate([memory, key], axis=1)
    value = joined if value is key else ops.concatenate([memory, value], axis=1)
    return joined, value, key_mask
