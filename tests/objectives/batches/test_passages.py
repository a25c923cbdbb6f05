"""Passages of documents, and texts of other documents."""

import collections

import numpy as np
import pytest

from tests.objectives.small import TEMPLATE, numbered
from tfnlp.objectives.batches.passages import Passages, passage_counts


@pytest.mark.parametrize(
    ("sizes", "room", "counts"),
    [
        ([4, 4, 4, 4], 8, [2, 2]),
        ([4, 4, 4, 4], 9, [4]),  # 3 sentences reach 9; the last is not left alone
        ([9, 9, 9, 9], 5, [2, 2]),  # two at least, though one is enough
        ([1, 1, 1, 1, 1], 2, [2, 3]),
        ([7], 5, []),
        ([], 5, []),
    ],
)
def test_passages_are_of_two_sentences_or_more(sizes, room, counts):
    assert passage_counts(sizes, room, 0.0, np.random.default_rng(0)) == counts


def test_a_tenth_of_passages_is_short():
    counts = passage_counts([1] * 300_000, 50, 0.1, np.random.default_rng(0))
    total = len(counts)
    # Lengths are drawn from 2 to 50, so that one in 49 of the short ones is whole.
    share = 0.1 * 48 / 49
    error = np.sqrt(share * (1 - share) / total)
    assert abs(sum(c < 50 for c in counts) / total - share) < 3 * error
    assert set(range(2, 50)) <= set(counts)
    assert set(passage_counts([1] * 1000, 50, 0.0, np.random.default_rng(0))) == {50}


def test_texts_of_other_documents_begin_at_any_place_with_enough_left():
    corpus = numbered([2, 2, 2], [2, 2], [2, 2, 2, 2], [2])
    passages = Passages.from_corpus(corpus, TEMPLATE, 40, 0.0, seed=0)
    rng = np.random.default_rng(0)
    found = collections.Counter(passages.other_text(0, 3, rng) for _ in range(4000))
    shares = {(1, 3, 5): 1 / 2, **{(2, start, start + 2): 1 / 6 for start in (5, 6, 7)}}
    assert found.keys() == shares.keys()
    for key, share in shares.items():
        assert abs(found[key] / 4000 - share) < 3 * np.sqrt(share * (1 - share) / 4000), key
    # No other document has 9 tokens: the largest of those that are drawn, as a whole.
    assert {passages.other_text(0, 9, rng) for _ in range(100)} == {(2, 5, 9)}
    # Of 8 tokens there is the document itself alone.
    others = collections.Counter(passages.other_text(2, 8, rng) for _ in range(100))
    assert others.most_common(1)[0][0] == (0, 0, 3) and all(x[0] != 2 for x in others)
