"""Late interaction, against its sum written out and sentence-transformers."""

import numpy as np
import pytest

from tfnlp.functional.late_interaction import max_sim

QUERY, TEXT = np.random.default_rng(0).normal(size=(2, 7, 4)).astype("float32")


def test_each_token_of_a_query_finds_its_nearest_one():
    expected = sum(max(float(q @ t) for t in TEXT[:3]) for q in QUERY)
    assert max_sim(QUERY, TEXT[:3]) == pytest.approx(expected, rel=1e-6)
    assert max_sim(QUERY[:2], QUERY[:2]) >= float((QUERY[:2] ** 2).sum()) - 1e-5


def test_it_is_that_of_sentence_transformers():
    similarity = pytest.importorskip("sentence_transformers.util.similarity")
    expected = similarity.maxsim([QUERY[:5]], [TEXT, TEXT[:2]])
    scores = [max_sim(QUERY[:5], TEXT), max_sim(QUERY[:5], TEXT[:2])]
    np.testing.assert_allclose(scores, expected[0], rtol=1e-6)
