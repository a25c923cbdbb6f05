"""One vector for the states of a text's real tokens, which come first."""

from keras import ops

from tfnlp.functional.masks import MASKED, masked_mean


def first_state(states, padding_mask):
    """Return the states (B, D) of each row's first token."""
    return ops.sum(states[:, :1], axis=1)  # of no token 0


def last_state(states, padding_mask):
    """Return the states (B, D) of each row's last real token; the first where there is none."""
    positions = ops.arange(ops.shape(states)[1])  # (L,)
    mask = ops.cast(padding_mask, positions.dtype)
    last = ops.max(mask * positions, axis=1, keepdims=True)  # (B, 1)
    # A product, not a gather along two axes: TFLite has it as a builtin.
    one_hot = ops.cast(ops.equal(positions[None], last), states.dtype)  # (B, L)
    return ops.squeeze(ops.matmul(one_hot[:, None], states), axis=1)


def largest(states, padding_mask):
    """Return the largest value (B, D) among each row's real tokens."""
    hidden = MASKED * (1 - ops.expand_dims(ops.cast(padding_mask, "float32"), -1))
    return ops.max(ops.cast(states, "float32") + hidden, axis=1)


def mean_by_root(states, padding_mask):
    """Return the sum of states divided by the root of their number, (B, D)."""
    lengths = ops.sum(ops.cast(padding_mask, "float32"), axis=1, keepdims=True)
    return masked_mean(states, padding_mask) * ops.sqrt(lengths)


def weighted_mean(states, padding_mask):
    """Return the mean (B, D) with the weight i for the i-th token (Muennighoff 2022, eq. 1)."""
    mask = ops.cast(padding_mask, "float32")
    return masked_mean(states, mask * ops.cumsum(ops.ones_like(mask), axis=1))


POOLINGS = {
    "first": first_state,
    "last": last_state,
    "max": largest,
    "mean": masked_mean,
    "mean_sqrt_length": mean_by_root,
    "weighted_mean": weighted_mean,
}
