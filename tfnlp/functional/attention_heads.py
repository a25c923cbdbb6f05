"""Heads: split and joined, scaled, and with biases of their own."""

from keras import ops

from tfnlp.functional.shapes import reshape


def split_heads(x, num_heads):
    """Split (B, L, N * H) into (B, N, L, H)."""
    batch, length, width = ops.shape(x)
    x = reshape(x, (batch, length, num_heads, width // num_heads))
    return ops.transpose(x, (0, 2, 1, 3))


def join_heads(x):
    """Join (B, N, L, H) into (B, L, N * H)."""
    batch, heads, length, size = ops.shape(x)
    return reshape(ops.transpose(x, (0, 2, 1, 3)), (batch, length, heads * size))


def split_table(x, num_heads):
    """Split (R, N * H) into (N, R, H)."""
    x = ops.reshape(x, (-1, num_heads, x.shape[-1] // num_heads))
    return ops.transpose(x, (1, 0, 2))


def scaled(query, terms=1):
    """Divide the query by sqrt(terms * H): it is smaller than the scores, so cheaper to scale."""
    return query * ops.cast((terms * query.shape[-1]) ** -0.5, query.dtype)


def add_by_head(x, bias):
    """Add a bias (N, H) to (B, N, T, H); its gradient is summed over one axis at a time.

    TensorFlow takes three times as long to sum over two axes with another between them.
    """
    return x + ops.broadcast_to(bias[:, None], (ops.shape(x)[0], *bias[:, None].shape))
