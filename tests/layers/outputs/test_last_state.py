"""The state of the last real token."""

import keras
import numpy as np

from tfnlp import layers

IDS = np.array([[3, 4, 5, 0, 0], [6, 7, 8, 9, 0]])


def test_the_last_state_is_that_of_the_last_real_token():
    embed = keras.layers.Embedding(10, 8, mask_zero=True)
    x = embed(IDS)
    last = layers.LastState()
    expected = np.asarray(x)[[0, 1], [2, 3]]
    np.testing.assert_array_equal(last(x), expected)
    np.testing.assert_array_equal(last(x.numpy(), IDS > 0), expected)
    np.testing.assert_array_equal(last(x.numpy()), np.asarray(x)[:, -1])


def test_the_last_state_wherever_padding_stands():
    x = np.random.default_rng(0).normal(size=(5, 5, 3)).astype("float32")
    mask = [[0, 0, 1, 1, 1], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 0, 0, 0], [0] * 5]
    expected = x[np.arange(5), [4, 2, 3, 0, 0]]
    for given in (np.array(mask), np.array(mask, bool)):
        np.testing.assert_array_equal(layers.LastState()(x, given), expected)
