"""Sampled tokens have the distribution of the softmax, and stand at masked positions."""

import numpy as np

from tests.objectives.small import make_batch
from tfnlp.objectives.token_replacement import ReplaceTokens, sample


def test_draws_have_the_distribution_of_the_softmax():
    logits = np.array([1.0, -2.0, 0.5, 3.0, -1e9, 0.0], "float32")
    shares = np.exp(logits - 3) / np.exp(logits - 3).sum()
    count = 100_000
    draws = np.random.default_rng(0).random(count, "float32")
    tokens = np.asarray(sample(np.tile(logits, (count, 1)), draws))
    assert tokens.dtype == np.int32
    found = np.bincount(tokens, minlength=6) / count
    assert (abs(found - shares) <= 3 * np.sqrt(shares * (1 - shares) / count)).all()
    # By hand: of shares 1/2, 1/4, 1/4 each draw up to a sum, that not included.
    logits = np.log(np.tile(np.array([[2.0, 1.0, 1.0]], "float32"), (6, 1)))
    draws = np.array([0, 0.49, 0.51, 0.74, 0.76, 1 - 2.0**-24], "float32")
    np.testing.assert_array_equal(sample(logits, draws), [0, 0, 1, 1, 2, 2])
    # Of more tokens than are summed at once: against sums in float64, but for rounding.
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(40, 50, 300)).astype("float32")
    draws = rng.random((40, 50), "float32")
    tokens = np.asarray(sample(logits, draws))
    sums = np.cumsum(np.exp(logits.astype("float64")), -1)
    above = np.take_along_axis(sums, tokens[..., None], -1)[..., 0] / sums[..., -1] - draws
    share = np.exp(np.take_along_axis(logits, tokens[..., None], -1)[..., 0]) / sums[..., -1]
    assert tokens.max() > 290 and (above > -1e-6).all() and (above < share + 1e-6).all()
    # A token that cannot be is not drawn, be it the first, or the draw 0.
    assert int(sample(np.array([[-np.inf, 0.0]], "float32"), np.zeros(1, "float32"))[0]) == 1


def test_sampled_tokens_stand_at_masked_positions_and_right_ones_count_as_original():
    inputs, labels, whole = make_batch()
    sampled = np.where(labels > 0, labels, 7)
    sampled[0, 1] = 5 if labels[0, 1] != 5 else 6
    found, replaced = ReplaceTokens()(
        inputs["token_ids"], inputs["masked_positions"], labels, sampled.astype("int32")
    )
    expected = whole.copy()
    expected[0, inputs["masked_positions"][0, 1]] = sampled[0, 1]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(replaced, expected != whole)
    assert np.sum(replaced) == 1
