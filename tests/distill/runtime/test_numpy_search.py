"""Greedy and beam search in NumPy."""

import numpy as np

from distill.runtime.numpy_search import best_places


def test_indices_of_the_largest_scores():
    scores = np.array([3, 5, 1, 5, 3, 5, 0], "float32")
    assert [*best_places(scores, 2)] == [1, 3]
    assert [*best_places(scores, 4)] == [1, 3, 5, 0]
    assert [*best_places(scores, 9)] == [1, 3, 5, 0, 4, 2, 6]
    many = np.random.default_rng(0).normal(size=(3, 1000)).astype("float32")
    many[1], many[2, ::3] = many[1].round(), -np.inf  # with many equals
    for row in many:
        np.testing.assert_array_equal(best_places(row, 8), np.argsort(-row, kind="stable")[:8])
