"""The mathematics of scaled dot-product attention, without weights."""

from keras import ops

from tfnlp.layers.masks import MASKED


def attention_scores(query, key):
    """q . k / sqrt(H) for every head and pair (Vaswani et al. 2017, eq. 1).

    Args:
        query: (B, N, T, H).
        key: (B, N, S, H).

    Returns:
        (B, N, T, S), before mask and softmax.
    """
    # The query is smaller than the scores, so it is the one to scale.
    query = query * ops.cast(query.shape[-1] ** -0.5, query.dtype)
    return ops.matmul(query, ops.swapaxes(key, -1, -2))


def masked_softmax(scores, mask=None):
    """Softmax over the last axis in float32, with zeros where `mask` is false.

    Args:
        scores: (B, N, T, S), any float type.
        mask: boolean, broadcasts to (B, T, S), or None.

    Returns:
        (B, N, T, S) in the type of `scores`. A row that is masked throughout is uniform
        here; `zero_masked_rows` clears what it attends to.
    """
    x = ops.cast(scores, "float32")
    if mask is not None:
        x = x + ops.where(mask, 0.0, MASKED)[:, None]
    return ops.cast(ops.softmax(x, axis=-1), scores.dtype)


def zero_masked_rows(context, mask):
    """Zeros in `context` (B, N, T, H) where a query may see no key at all."""
    if mask is None:
        return context
    seen = ops.any(mask, axis=-1)[:, None, :, None]
    return context * ops.cast(seen, context.dtype)
