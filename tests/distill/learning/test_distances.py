"""Distances over masked keys are those of the others alone; those of vectors, by hand."""

import numpy as np
import pytest

from distill.learning.distances import (
    attention_divergence,
    relation_divergence,
    similarity_error,
    vector_error,
)
from distill.learning.methods import attention_score_terms
from tests.distill.learning.test_methods import relations
from tests.distill.learning.test_terms import divergence


def test_causal_attention_leaves_later_keys_out():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 2, 3, 5, 5)).astype("float32")
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    found = attention_divergence(a, b, mask, causal=True)
    for row, n in enumerate((5, 3)):
        for i in range(n):
            due = divergence(a[row, :, i, : i + 1], b[row, :, i, : i + 1]).mean()
            assert float(found[row, i]) == pytest.approx(due, rel=1e-4, abs=1e-6)
    (term,) = attention_score_terms([0], causal=True)
    found = term.loss({"attention_scores": [a]}, {"attention_scores": [b]}, mask)
    pairs = [
        ((a - b)[row, :, i, j] ** 2).mean()
        for row, n in enumerate((5, 3))
        for i in range(n)
        for j in range(i + 1)
    ]
    assert float(found) == pytest.approx(np.mean(pairs), rel=1e-5)
    x, y = rng.normal(size=(2, 1, 2, 4, 3)).astype("float32")
    found = relation_divergence(x, y, None, causal=True)
    due = divergence(relations(x[0], 2, 4)[:, 2, :3], relations(y[0], 2, 4)[:, 2, :3]).mean()
    assert float(found[0, 2]) == pytest.approx(due, rel=1e-4)


def test_vectors_are_compared_with_the_teachers_and_with_each_other():
    rng = np.random.default_rng(0)
    teacher, student = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    error = ((student - teacher) ** 2).sum(-1) / (teacher**2).sum(-1)
    np.testing.assert_allclose(vector_error(teacher, student, None), error, rtol=1e-6)

    def cosines(vectors):
        vectors = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
        return vectors @ vectors.T

    parts = [((cosines(teacher) - cosines(student[:, :d])) ** 2).mean(-1) for d in (4, 2, 1)]
    for dims in ((), (2,), (2, 1)):
        error = similarity_error(teacher, student, None, dims=dims)
        np.testing.assert_allclose(error, sum(parts[: len(dims) + 1]), rtol=1e-5)
    # Of another width.
    error = similarity_error(teacher, student[:, :2], None)
    np.testing.assert_allclose(error, parts[1], rtol=1e-5)
