"""Filtered ranks, by hand-made cases and a plain loop."""

import numpy as np
import pytest

from tfnlp.knowledge import score_links
from tfnlp.knowledge.link_prediction import mean_ranks


def test_equal_scores_share_their_ranks():
    scores = np.array([[3, 2, 1, 2], [1, 1, 1, 1], [5, 9, 7, 8], [5, 9, 7, 8]])
    targets = np.array([1, 2, 0, 0])
    excluded = np.zeros((4, 4), bool)
    excluded[3, [0, 1, 3]] = True  # the target itself stays
    np.testing.assert_array_equal(mean_ranks(scores, targets, excluded), [2.5, 2.5, 4, 2])


def test_a_score_that_is_not_a_number_is_no_success():
    nan = np.nan
    scores = np.array([[nan, nan, nan], [1, nan, 0], [nan, 2, 3]])
    ranks = mean_ranks(scores, np.array([1, 0, 0]), np.zeros((3, 3), bool))
    np.testing.assert_array_equal(ranks, [3.5, 2, 3.5])


class Scorer:
    """Scores that are whole numbers, so that many are equal."""

    num_entities = 9
    numbers = np.random.default_rng(0).integers(0, 5, (9, 2, 9))

    def score(self, heads, relations, tails):
        return self.numbers[heads, relations, tails]


def plain_ranks(model, triples, known):
    """Return the mean of the best and the worst place of each answer in the sorted candidates."""
    true = {tuple(row) for row in [*known.tolist(), *triples.tolist()]}
    for h, r, t in triples.tolist():
        for answers in ([(h, r, x) for x in range(9)], [(x, r, t) for x in range(9)]):
            kept = [x for x in answers if x == (h, r, t) or x not in true]
            scores = sorted(-model.numbers[x] for x in kept)
            mine = -model.numbers[h, r, t]
            places = [place for place, score in enumerate(scores, 1) if score == mine]
            yield (places[0] + places[-1]) / 2


def test_scores_are_those_of_a_plain_loop():
    rng = np.random.default_rng(1)
    known, triples = (
        np.stack([rng.integers(0, 9, n), rng.integers(0, 2, n), rng.integers(0, 9, n)], 1)
        for n in (40, 11)
    )
    ranks = np.array(list(plain_ranks(Scorer, triples, known)))
    scores = score_links(Scorer(), triples, known, batch_size=4)
    expected = {"mrr": np.mean(1 / ranks), "mean_rank": np.mean(ranks)}
    expected |= {f"hits_at_{k}": np.mean(ranks <= k) for k in (1, 3, 10)}
    assert scores == pytest.approx(expected) and list(scores) == list(expected)
