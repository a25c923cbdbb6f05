"""The state of the last real token."""

import keras
import numpy as np

from tfnlp import layers


def test_the_last_state_is_that_of_the_last_real_token_wherever_padding_stands():
    x, last = np.random.default_rng(0).normal(size=(5, 5, 3)).astype("float32"), layers.LastState()
    mask = [[0, 0, 1, 1, 1], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 0, 0, 0], [0] * 5]
    expected = x[np.arange(5), [4, 2, 3, 0, 0]]
    for shown in (np.array(mask), np.array(mask, bool)):
        np.testing.assert_array_equal(last(x, shown), expected)
    np.testing.assert_array_equal(last(x), x[:, -1])
    embed = keras.layers.Embedding(10, 8, mask_zero=True)
    y = embed(np.array([[3, 4, 5, 0, 0], [6, 7, 8, 9, 0]]))
    np.testing.assert_array_equal(last(y), np.asarray(y)[[0, 1], [2, 3]])
