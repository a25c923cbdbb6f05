"""Sums by block against additions to one array."""

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.functional.block_sums import add_first, first_sum, rotate, stack_sums, zero_sums


@pytest.mark.parametrize("is_known", [True, False])
def test_additions_go_to_the_block_that_comes_first(is_known):
    rng = np.random.default_rng(0)
    expected, first = np.zeros((5, 2, 3), "float32"), 0
    sums = zero_sums(5 if is_known else tf.constant(5), (2, 3), "float32")
    for steps in (1, 1, -1, 4, 7, -6, -6):
        added = rng.normal(size=(2, 3)).astype("float32")
        expected[first] += added
        sums = add_first(sums, added)
        np.testing.assert_array_equal(first_sum(sums), expected[first])
        sums = rotate(sums, steps)
        first = (first + steps) % 5
    assert first == 0  # rotated back
    np.testing.assert_array_equal(stack_sums(sums), expected)
