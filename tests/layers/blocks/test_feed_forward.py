"""The feed-forward network against NumPy."""

import math

import numpy as np

from tfnlp.layers import (
    FeedForward,
)


def test_feed_forward_is_exact_gelu_between_two_products():
    x = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32") * 3
    layer = FeedForward(16)
    y = layer(x)
    w1, b1, w2, b2 = [w.numpy().astype("float64") for w in layer.weights]
    h = x @ w1 + b1
    expected = (h * 0.5 * (1 + np.vectorize(math.erf)(h / np.sqrt(2)))) @ w2 + b2
    np.testing.assert_allclose(y, expected, atol=1e-6)
