"""Masks as tables."""

import numpy as np

from tfnlp.functional.masks import combine_masks, document_numbers
from tfnlp.layers import causal_mask, padding_mask, permutation_masks, segment_mask, with_memory


def test_masks_read_as_tables():
    np.testing.assert_array_equal(padding_mask(np.array([[5, 0, 7]])), [[True, False, True]])
    same = segment_mask(np.array([[0, 1]]), np.array([[0, 0, 1]]))
    np.testing.assert_array_equal(same, [[[True, True, False], [False, False, True]]])
    numbers = document_numbers(np.array([[0, 1, 0, 0, 1, 2], [0, 1, 2, 3, 4, 5]]))
    np.testing.assert_array_equal(numbers, [[1, 1, 2, 3, 3, 3], [1] * 6])
    content, query = permutation_masks(np.array([[2, 0, 1]]))  # position 1 first, 0 last
    expected = [[True, True, True], [False, True, False], [False, True, True]]
    np.testing.assert_array_equal(content[0], expected)
    np.testing.assert_array_equal(query[0], expected & ~np.eye(3, dtype=bool))
    np.testing.assert_array_equal(causal_mask(2, 3)[0], [[True, True, False], [True, True, True]])
    np.testing.assert_array_equal(
        with_memory(causal_mask(2, 2), 1)[0], [[True, True, False], [True, True, True]]
    )


def test_masks_by_head_and_by_position_meet_on_their_axes():
    rng, batch = np.random.default_rng(0), 2
    by_head = rng.random((batch, 2, 3, 4)) < 0.7
    queries, keys = rng.random((batch, 3)) < 0.7, rng.random((batch, 4)) < 0.7
    shapes = (batch, 3, 8), (batch, 4, 8)
    found = combine_masks(*shapes, by_head, queries, keys, num_heads=2)
    expected = by_head & queries[:, None, :, None] & keys[:, None, None, :]
    np.testing.assert_array_equal(found, expected)
