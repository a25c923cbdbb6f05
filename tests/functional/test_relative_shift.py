"""The relative shift against loops."""

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.layers import relative_shift


@pytest.mark.parametrize(("rows", "source"), [(1, 1), (1, 5), (5, 1), (7, 4), (4, 9)])
def test_relative_shift_and_its_gradient(rows, source):
    x = tf.random.normal((2, 3, rows, rows + source))
    pull = tf.random.normal((2, 3, rows, source))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = relative_shift(x, source)
        loss = tf.reduce_sum(y * pull)
    expected, gradient = np.zeros(y.shape), np.zeros(x.shape)
    for i in range(rows):
        for j in range(source):
            expected[..., i, j] = x[..., i, rows - 1 - i + j]
            gradient[..., i, rows - 1 - i + j] += pull[..., i, j]
    np.testing.assert_array_equal(y, expected.astype("float32"))
    np.testing.assert_array_equal(tape.gradient(loss, x), gradient.astype("float32"))


def test_relative_shift_of_causal_columns():
    x = tf.random.normal((1, 4, 4, 7))
    y = relative_shift(x, 6).numpy()
    for i in range(4):
        for j in range(2 + i + 1):
            np.testing.assert_array_equal(y[..., i, j], x[..., i, 3 - i + j])
