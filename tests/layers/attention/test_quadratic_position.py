"""Quadratic attention against loops in NumPy, and against convolutions."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.layers import witnesses
from tests.layers.witnesses import near, randomise
from tfnlp.layers import (
    QuadraticPositionAttention,
)


@pytest.mark.parametrize("value_dim", [None, 5])
@pytest.mark.parametrize("masked", [False, True])
def test_quadratic(value_dim, masked):
    rng = np.random.default_rng(0)
    image = rng.normal(size=(2, 4, 5, 3)).astype("float32")
    mask = np.ones((2, 20, 20), bool)
    if masked:
        mask = rng.random(mask.shape) < 0.6
        mask[0, 0] = False
    layer = QuadraticPositionAttention(3, 6, value_dim=value_dim)
    layer.build(image.shape)
    randomise(layer)
    layer.widths.assign([0.1, 0.7, 2.0])
    expected, expected_scores = witnesses.quadratic(layer, image, mask)
    found, scores = layer(
        image, attention_mask=mask if masked else None, return_attention_scores=True
    )
    near(found, expected)
    near(scores, np.broadcast_to(expected_scores, scores.shape))
    if not masked:  # along rows and columns, or all pixels at once: the same
        near(layer(image, attention_mask=mask), found)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 3},
        {"kernel_size": (1, 5), "activation": "relu"},
        {"kernel_size": (5, 3), "use_bias": False},
        {"kernel_size": 3, "dilation_rate": 2},
        {"kernel_size": 2},
    ],
)
def test_attention_that_equals_a_convolution(options):
    """Theorem 1 of Cordonnier et al. at every pixel whose window is inside the image."""
    convolution = keras.layers.Conv2D(
        7, padding="same", bias_initializer="random_normal", **options
    )
    image = np.random.default_rng(0).normal(size=(2, 12, 11, 4)).astype("float32")
    expected = convolution(image).numpy()
    layer = QuadraticPositionAttention.from_convolution(convolution)
    found = layer(image).numpy()
    rows, columns = (
        (size - 1) * dilation
        for size, dilation in zip(convolution.kernel_size, convolution.dilation_rate, strict=True)
    )
    top, left = rows // 2, columns // 2
    inside = (
        slice(None),
        slice(top, 12 - (rows - top) or None),
        slice(left, 11 - (columns - left) or None),
    )
    assert found[inside].size > 100
    np.testing.assert_allclose(found[inside], expected[inside], atol=1e-4)
    if rows:  # Zeros beyond the border are what attention cannot read.
        assert np.abs(found[:, 0] - expected[:, 0]).max() > 1e-2


def test_quadratic_gradients_match_the_convolution_s():
    convolution = keras.layers.Conv2D(3, 3, padding="same")
    image = tf.random.normal((1, 9, 9, 2))
    convolution(image)
    layer = QuadraticPositionAttention.from_convolution(convolution)
    inside = np.zeros((1, 9, 9, 1), "float32")
    inside[:, 1:-1, 1:-1] = 1
    gradients = []
    for f, kernel in ((convolution, convolution.kernel), (layer, layer.output_dense.kernel)):
        with tf.GradientTape() as tape:
            tape.watch(image)
            y = tf.reduce_sum((f(image) * inside) ** 2)
        gradients.append(tape.gradient(y, [image, kernel.value]))
    for a, b in zip(*gradients, strict=True):
        a, b = a.numpy().ravel(), b.numpy().ravel()
        assert np.abs(a - b).max() <= 1e-4 * np.abs(a).max()
