"""The memory of earlier positions."""

import numpy as np

from tfnlp.layers import (
    update_memory,
)


def test_a_memory_keeps_the_first_states_where_the_rest_is_read_again():
    """XLNet's `reuse_len`."""
    memory, states = np.arange(2.0).reshape(1, 2, 1), np.arange(2.0, 7.0).reshape(1, 5, 1)
    found = update_memory(memory, states, reuse_length=3)
    np.testing.assert_array_equal(np.ravel(found), [0, 1, 2, 3, 4])
    found = update_memory(memory, states, 4, reuse_length=3)
    np.testing.assert_array_equal(np.ravel(found), [1, 2, 3, 4])
