"""Few-shot fine-tuning: its pairs and its head."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tfnlp.text import Examples
from tfnlp.training.experiments.few_shot import label_pairs, logistic_head


def test_all_pairs_are_learned_and_as_many_alike_as_not():
    labels = [0, 0, 0, 0, 0, 1, 2]
    pairs = label_pairs(Examples([*"abcdefg"], None, labels, [*"xyz"]), seed=3)
    label_of = dict(zip("abcdefg", labels, strict=True))
    for (first, second), score in zip(pairs.texts, pairs.scores, strict=True):
        assert score == (label_of[first] == label_of[second])
    every = {*itertools.combinations_with_replacement("abcdefg", 2)}
    alike = {pair for pair in every if label_of[pair[0]] == label_of[pair[1]]}
    assert {*pairs.texts} == every
    assert (sum(pairs.scores), len(pairs)) == (len(alike), 2 * len(alike)) == (17, 34)
    assert pairs.texts != label_pairs(Examples([*"abcdefg"], None, labels, []), seed=4).texts


def test_pairs_are_as_many_as_those_of_setfit():
    sampler = pytest.importorskip("setfit.sampler")
    texts, labels = [*"abcdefgh"], [0, 0, 0, 0, 1, 1, 1, 2]
    theirs = sampler.ContrastiveDataset(texts, labels, multilabel=False)
    pairs = label_pairs(Examples(texts, None, labels, [*"xyz"]), seed=0)
    assert len(pairs) == len(theirs)
    assert {*pairs.texts} == {(x["sentence_1"], x["sentence_2"]) for x in theirs}


@pytest.mark.parametrize("classes", [2, 3])
def test_the_head_has_the_probabilities_of_logistic_regression(classes):
    rng = np.random.default_rng(0)
    vectors, labels = rng.normal(size=(30, 5)), np.arange(30) % classes
    kernel, bias = logistic_head(vectors, labels)
    assert kernel.shape == (5, classes)
    logits = vectors @ kernel + bias
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    expected = LogisticRegression().fit(vectors, labels).predict_proba(vectors)
    np.testing.assert_allclose(p, expected, atol=1e-12)
