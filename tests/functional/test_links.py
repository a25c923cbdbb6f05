"""Links against NumPy: answers, divergences and means of logits."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit, log_softmax, logit, softmax

from tfnlp.functional.links import LINKS

RNG = np.random.default_rng(0)
A, B = 3 * RNG.normal(size=(2, 4, 5)).astype("float32")
SHARES = np.array([0.25, 0.75], "float32").reshape(1, 2, 1)
T = 2.0


def kl(p, q):
    return np.sum(p * np.log(p / q), axis=-1)


def bernoulli_kl(p, q):
    return np.mean(p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)), axis=-1)


@pytest.mark.parametrize(
    ("name", "answer", "divergence", "mean"),
    [
        ("softmax", lambda x: softmax(x, -1), kl, np.log),
        ("sigmoid", expit, bernoulli_kl, logit),
        ("identity", lambda x: x, lambda p, q: np.mean((p - q) ** 2, axis=-1), lambda p: p),
    ],
)
def test_answers_divergences_and_means_are_those_of_numpy(name, answer, divergence, mean):
    link, t = LINKS[name], 1 if name == "identity" else T
    np.testing.assert_allclose(link.probability(A), answer(A), rtol=1e-5)
    expected = t**2 * divergence(answer(A / t), answer(B / t))
    np.testing.assert_allclose(link.divergence(A, B, T), expected, rtol=1e-4)
    one_way, other_way = (divergence(answer(x), answer(y)) for x, y in ((A, B), (B, A)))
    both = one_way if name == "identity" else one_way + other_way
    np.testing.assert_allclose(link.symmetric(A, B), both, rtol=1e-4)
    models = np.stack([A, B], axis=1)  # (B, M, C)
    pooled = np.asarray(link.mean(models, SHARES, T))
    expected = (SHARES * answer(models / t)).sum(1)
    np.testing.assert_allclose(answer(pooled / t), expected, rtol=1e-5)
    if name != "softmax":  # whose logits are right up to a number for each row
        np.testing.assert_allclose(pooled, t * mean(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["softmax", "sigmoid"])
def test_the_symmetric_divergence_pulls_each_side_to_the_other(name):
    """As two divergences with a fixed first side, the form of SiFT's released code."""
    a, b = tf.Variable(A), tf.Variable(B)
    with tf.GradientTape(persistent=True) as tape:
        both = tf.reduce_sum(LINKS[name].symmetric(a, b))
        fixed = map(tf.stop_gradient, (a, b))
        parts = [LINKS[name].divergence(x, y) for x, y in zip(fixed, (b, a), strict=True)]
        parts = tf.reduce_sum(tf.add_n(parts))
    assert float(both) == pytest.approx(float(parts), rel=1e-5)
    for ours, due in zip(*(tape.gradient(x, [a, b]) for x in (both, parts)), strict=True):
        np.testing.assert_allclose(ours, due, atol=1e-5)


def test_padding_is_no_position():
    link, mask = LINKS["positions"], np.array([[1, 1, 1, 0, 0]] * 4)
    masked = [link.without_padding(x, mask) for x in (A, B)]
    short = log_softmax(A[:, :3], -1), log_softmax(B[:, :3], -1)
    expected = np.sum(np.exp(short[0]) * (short[0] - short[1]), axis=-1)
    np.testing.assert_allclose(link.divergence(*masked), expected, rtol=1e-4)
    for name in ("softmax", "sigmoid", "identity"):
        assert LINKS[name].without_padding(A, mask) is A
    assert link.without_padding(A, None) is A


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="have one class"):
        LINKS["softmax"].divergence(keras.ops.ones((2, 1)), keras.ops.ones((2, 1)))
