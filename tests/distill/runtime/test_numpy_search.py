"""Greedy and beam search in NumPy."""

import itertools

import numpy as np
import pytest

from distill.runtime.numpy_search import beam_search, best_places, greedy
from tests.generation.test_search_algorithms import END, found
from tfnlp.generation import Beam, Greedy


def test_indices_of_the_largest_scores():
    scores = np.array([3, 5, 1, 5, 3, 5, 0], "float32")
    assert [*best_places(scores, 2)] == [1, 3]
    assert [*best_places(scores, 4)] == [1, 3, 5, 0]
    assert [*best_places(scores, 9)] == [1, 3, 5, 0, 4, 2, 6]
    many = np.random.default_rng(0).normal(size=(3, 1000)).astype("float32")
    many[1], many[2, ::3] = many[1].round(), -np.inf  # with many equals
    for row in many:
        np.testing.assert_array_equal(best_places(row, 8), np.argsort(-row, kind="stable")[:8])


class Table:
    """A decoder whose next token depends on the last alone."""

    def __init__(self, logits):
        self.logits = logits

    def step(self, token_ids, parents):
        return self.logits[token_ids]


@pytest.mark.parametrize("early_stopping", [True, False, "never"])
def test_texts_are_those_of_the_search_in_tensorflow(early_stopping):
    for seed, bonus, penalty in itertools.product(range(5), (0, 1), (-1.0, 0.0, 1.0, 2.0)):
        logits = 2 * np.random.default_rng(seed).normal(size=(8, 8)).astype("float32")
        logits[:, END] += bonus
        beam = Beam(3, penalty, early_stopping=early_stopping, best=3)
        texts = beam_search(Table(logits), logits[1], beam, 6, END)
        tokens, lengths, scores = found(logits, beam, steps=6)
        rows = [row[:n].tolist() for row, n in zip(tokens, lengths, strict=True)]
        assert [ids for ids, _ in texts] == rows
        np.testing.assert_allclose([score for _, score in texts], scores, atol=1e-5)
        tokens, (length,), _ = found(logits, Greedy(), steps=6)
        assert greedy(Table(logits), logits[1], 6, END) == [(tokens[0, :length].tolist(), None)]
