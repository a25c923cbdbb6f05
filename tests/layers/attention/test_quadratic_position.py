"""Quadratic attention against its formula, and against convolutions."""

import keras
import numpy as np
import pytest

from tests.layers.witnesses import near, project, rand, randomise, weight
from tfnlp.layers import QuadraticPositionAttention


@pytest.mark.parametrize("value_dim", [None, 5])
def test_scores_are_quadratic_in_the_distance_of_two_pixels(value_dim):
    """Cordonnier et al. 2020, section 3: v . (|d|^2, d) of each head's centre and width."""
    image, mask = rand(2, 4, 5, 3), rand(2, 20, 20) < 0.3
    mask[0, 0] = False  # a query that may see nothing
    start = {"center_initializer": "ones", "width_initializer": "zeros"}
    layer = QuadraticPositionAttention(3, 6, value_dim=value_dim, **start)
    layer.build(image.shape)
    assert weight(layer.centers).all() and not weight(layer.widths).any()
    randomise(layer)
    layer.widths.assign([0.1, 0.7, 2.0])
    pixels = np.array([(y, x) for y in range(4) for x in range(5)])
    shifts = pixels[None] - pixels[:, None]  # (queries, keys, 2)
    values, heads, scores = image.reshape(2, 20, 3), [], []
    if value_dim:
        values = project(layer.value, values)
    for n, center in enumerate(weight(layer.centers)):
        squares = (shifts**2).sum(-1) - 2 * shifts @ center
        scores.append(-weight(layer.widths)[n] * squares)
        shares = np.exp(scores[-1] - scores[-1].max(-1, keepdims=True)) * mask
        shares = shares / np.maximum(shares.sum(-1, keepdims=True), 1e-30)
        part = slice(n * value_dim, (n + 1) * value_dim) if value_dim else slice(None)
        heads.append(shares @ values[..., part])
    expected = project(layer.output_dense, np.concatenate(heads, axis=-1))
    output, by_layer = layer(image, attention_mask=mask, return_attention_scores=True)
    near(output, expected.reshape(2, 4, 5, -1))
    near(by_layer, np.broadcast_to(scores, by_layer.shape))
    # Along rows and columns, or all pixels at once: the same.
    near(layer(image, attention_mask=np.ones_like(mask)), layer(image))


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 3},
        {"kernel_size": (1, 5), "activation": "relu"},
        {"kernel_size": 3, "dilation_rate": 2, "use_bias": False},
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
