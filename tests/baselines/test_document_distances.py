import numpy as np
import pytest
from scipy.optimize import linprog

from tfnlp.baselines import (
    Document,
    DocumentIndex,
    centroid_distance,
    relaxed_distance,
    word_movers_distance,
)
from tfnlp.utils.errors import InputError

pytest.importorskip("ot")
RNG = np.random.default_rng(0)
VOCABULARY = [f"w{i}" for i in range(40)]
VECTORS = {word: RNG.normal(size=8) for word in VOCABULARY}


def draw(length):
    return Document(list(RNG.choice(VOCABULARY, length)), VECTORS)


def by_linear_program(first, second):
    n, m = len(first.shares), len(second.shares)
    costs = np.linalg.norm(first.points[:, None] - second.points[None], axis=-1)
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    shares = np.concatenate([first.shares, second.shares])
    return linprog(costs.ravel(), A_eq=np.vstack([rows, columns]), b_eq=shares).fun


@pytest.mark.parametrize("lengths", [(1, 1), (1, 7), (5, 5), (12, 9)])
def test_the_distance_is_the_optimum_and_the_bounds_are_below(lengths):
    first, second = map(draw, lengths)
    distance = word_movers_distance(first, second)
    assert distance == pytest.approx(by_linear_program(first, second), abs=1e-9)
    assert centroid_distance(first, second) <= distance + 1e-12
    assert relaxed_distance(first, second) <= distance + 1e-12
    assert word_movers_distance(first, first) == pytest.approx(0, abs=1e-12)


def test_the_relaxed_distance_is_the_larger_bound():
    vectors = {"a": np.array([0.0]), "b": np.array([1.0]), "c": np.array([5.0])}
    first, second = (Document(words, vectors, ()) for words in (["a"], ["b", "b", "c"]))
    # All of "a" to the nearest is 1; "b" and "c" to "a" are 1 and 5.
    for pair in ((first, second), (second, first)):
        assert relaxed_distance(*pair) == pytest.approx((2 * 1 + 5) / 3)


def test_the_pruned_search_is_exact():
    documents = [draw(n) for n in RNG.integers(1, 12, 60)]
    index = DocumentIndex(documents)
    solved = 0
    for _ in range(10):
        query = draw(6)
        distances = np.array([word_movers_distance(query, d) for d in documents])
        expected = np.argsort(distances, kind="stable")[:5]
        nearest = index.nearest(query, 5)
        np.testing.assert_allclose([d for _, d in nearest], distances[expected], atol=1e-12)
        assert [i for i, _ in nearest] == list(expected)
        solved += index.solved
    assert 5 * 10 <= solved < 0.8 * 60 * 10


def test_words_are_counted_without_stop_words_and_unknown_ones():
    document = Document(["w1", "the", "w2", "w1", "unknown", "and"], VECTORS | {"the": np.ones(8)})
    np.testing.assert_allclose(document.shares, [2 / 3, 1 / 3])
    np.testing.assert_allclose(document.centroid, (2 * VECTORS["w1"] + VECTORS["w2"]) / 3)


def test_an_empty_document_is_named():
    with pytest.raises(InputError, match=r"\(the unknown\) has no word with a vector"):
        Document(["the", "unknown"], VECTORS)
    with pytest.raises(InputError, match="no words"):
        Document([], VECTORS)
