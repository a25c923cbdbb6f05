"""The mean of the states of real tokens."""

import keras
import numpy as np

from tfnlp import layers

IDS = np.array([[3, 4, 5, 0, 0], [6, 7, 8, 9, 0]])


def test_the_mean_is_that_of_real_tokens():
    x = keras.layers.Embedding(10, 8, mask_zero=True)(IDS)
    rows = np.asarray(x)
    expected = [rows[0, :3].mean(0), rows[1, :4].mean(0)]
    pool = layers.MeanPooling()
    np.testing.assert_allclose(pool(x), expected, rtol=1e-6)
    np.testing.assert_allclose(pool(rows, IDS > 0), expected, rtol=1e-6)
    np.testing.assert_allclose(pool(rows), rows.mean(1), rtol=1e-6)
    assert not np.any(pool(rows, np.zeros_like(IDS)))


def test_half_precision_adds_up_in_float32():
    x = np.full((1, 4096, 2), 30.0, "float16")  # whose sum, 122,880, float16 has not
    pooled = layers.MeanPooling(dtype="float16")(x, np.ones((1, 4096)))
    assert pooled.dtype == "float16"
    np.testing.assert_array_equal(pooled, [[30, 30]])
