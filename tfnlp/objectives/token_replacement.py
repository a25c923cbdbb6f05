"""Replacement of masked tokens by sampled ones (Clark et al. 2020, 'ELECTRA', section 2)."""

import keras
from keras import ops

from tfnlp.text.batching.batches import IGNORED

# The number of tokens of a block of cumulative sums.
BLOCK = 128


def sample(logits, draws):
    """Sample a token from each softmax by inverting its cumulative sums.

    The random numbers are inputs, so a draw is the same on one device, on several, and in a
    resumed run. The distribution equals that of Gumbel noise and argmax, as in ELECTRA's code.
    Sums are taken over blocks of tokens, then within one block: this takes a twelfth of the time
    of sums over all tokens, and is more accurate.

    Args:
        logits: (..., V).
        draws: (...) float32, uniform in [0, 1).

    Returns:
        (...) int32.
    """
    size = logits.shape[-1]
    count = -(-size // BLOCK)
    logits = ops.reshape(ops.cast(logits, "float32"), (-1, size))
    shares = ops.exp(logits - ops.max(logits, axis=-1, keepdims=True))
    shares = ops.pad(shares, ((0, 0), (0, count * BLOCK - size)))
    shares = ops.reshape(shares, (-1, count, BLOCK))
    sums = ops.cumsum(ops.sum(shares, axis=-1), axis=-1)  # (n, blocks)
    target = ops.reshape(draws, (-1, 1)) * sums[:, -1:]
    block = _first_above(sums, target)  # (n, 1)
    before = ops.take_along_axis(ops.pad(sums, ((0, 0), (1, 0))), block, axis=-1)
    rows = ops.arange(ops.shape(block)[0], dtype="int32")[:, None] * count + block
    within = ops.cumsum(ops.take(ops.reshape(shares, (-1, BLOCK)), rows[:, 0], axis=0), axis=-1)
    token_ids = block * BLOCK + _first_above(within, target - before)
    return ops.reshape(ops.minimum(token_ids, size - 1), ops.shape(draws))


def _first_above(sums, target):
    """Return the first index where rising sums (n, m) exceed a target (n, 1), at most m - 1."""
    below = ops.sum(ops.cast(sums <= target, "int32"), axis=-1, keepdims=True)
    return ops.minimum(below, sums.shape[-1] - 1)  # rounding may raise a target to the last sum


class SampleTokens(keras.layers.Layer):
    """Sampling by `sample` from logits (B, P, V) and draws (B, P), without a gradient."""

    def call(self, logits, draws):
        return sample(ops.stop_gradient(logits), draws)

    def compute_output_spec(self, logits, draws):
        return keras.KerasTensor(draws.shape, dtype="int32")


class ReplaceTokens(keras.layers.Layer):
    """Replacement of masked tokens by sampled ones.

    Call arguments:
        token_ids: (B, L).
        positions: (B, P), unique within a text.
        originals: (B, P), the original tokens; -100 where a text has fewer.
        sampled: (B, P).

    Returns:
        The new ids, and 1 where they differ from the original ones; both (B, L) int32.
    """

    def call(self, token_ids, positions, originals, sampled):
        places = ops.arange(ops.shape(token_ids)[1], dtype=positions.dtype)
        real = ops.not_equal(originals, IGNORED)
        hits = ops.equal(positions[:, :, None], places) & real[:, :, None]  # (B, P, L)
        chosen = ops.any(hits, axis=1)

        def placed(values):
            return ops.sum(ops.where(hits, values[:, :, None], 0), axis=1)

        new = placed(sampled)
        other = chosen & ops.not_equal(new, placed(originals))
        return ops.where(chosen, new, token_ids), ops.cast(other, "int32")

    def compute_output_spec(self, token_ids, positions, originals, sampled):
        return tuple(keras.KerasTensor(token_ids.shape, dtype="int32") for _ in range(2))
