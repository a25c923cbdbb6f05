"""Kneser-Ney smoothing: against nltk, a plain loop of the paper's equations, and by hand."""

import math

import numpy as np
import pytest
from nltk.lm import KneserNeyInterpolated

from tfnlp.baselines import NgramModel, NgramSettings, evaluate_ngrams
from tfnlp.baselines.ngram_lm import FALLBACK, START, estimate_discounts
from tfnlp.utils.errors import InputError

TEXTS = [
    text.split()
    for text in (
        "the film is a fine film and the song is a fine song",
        "the song of the film is dull",
        "the film is dull and the song is dull",
        "영화 는 정말 재미있는 영화 다",
        "정말 재미있는 노래 다",
        "",
    )
]


def padded(text, order):
    return [START] * (order - 1) + text + ["</s>"]


def ngrams(order, size):
    """All n-grams of `size` tokens that end in a predicted one."""
    rows = [padded(text, order) for text in TEXTS]
    return [tuple(row[i - size + 1 : i + 1]) for row in rows for i in range(order - 1, len(row))]


def plain(model, token, context, size):
    """Equations of Chen & Goodman 1999, each count by a look at all n-grams."""
    if size == 0:
        return 1 / len(model.tokens)
    if size == model.order:
        seen = ngrams(model.order, size)
    else:  # a shorter n-gram counts once for each token before it
        seen = [ngram[1:] for ngram in set(ngrams(model.order, size + 1))]
    context = context[len(context) - size + 1 :]
    shorter = plain(model, token, context, size - 1)
    counts = {w: seen.count((*context, w)) for w in model.tokens}
    total = sum(counts.values())
    if not total:
        return shorter
    discounts = {c: model.discounts[size - 1][min(c, 3) - 1] if c else 0.0 for c in range(99)}
    left = sum(discounts[c] for c in counts.values()) / total
    return (counts[token] - discounts[counts[token]]) / total + left * shorter


@pytest.mark.parametrize("order", [2, 3, 4])
def test_one_discount_is_nltks(order):
    discounts = [[0.0] * 3, *[[0.75] * 3] * (order - 1)]  # nltk discounts no single tokens
    model = NgramModel(TEXTS, NgramSettings(order), discounts=discounts)
    theirs = KneserNeyInterpolated(order, discount=0.75)
    rows = [[tuple(n) for size in range(1, order + 1) for n in ngrams(order, size)]]
    theirs.fit(rows, [START, *model.tokens])
    for context in {ngram[:-1] for ngram in ngrams(order, order)} | {("dull",) * (order - 1)}:
        for token in model.tokens:
            expected = theirs.unmasked_score(token, context)
            assert model.probability(token, context) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_three_discounts_are_the_papers(order):
    model = NgramModel(TEXTS, NgramSettings(order))
    for context in {ngram[:-1] for ngram in ngrams(order, order)} | {("<unk>",) * (order - 1)}:
        found = [model.probability(token, context) for token in model.tokens]
        expected = [plain(model, token, context, order) for token in model.tokens]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert sum(found) == pytest.approx(1)


def test_discounts_by_hand():
    table = {("a",): {"b": 1, "c": 1, "d": 1, "e": 1, "f": 2, "g": 2, "h": 3, "i": 4}}
    share = 4 / (4 + 2 * 2)
    expected = (1 - 2 * share * 2 / 4, 2 - 3 * share * 1 / 2, 3 - 4 * share * 1 / 1)
    assert estimate_discounts(table) == pytest.approx(expected)
    assert estimate_discounts({("a",): {"b": 1, "c": 2}}) == FALLBACK
    counts = [1] * 4 + [2] * 2 + [3] * 2 + [4] * 3  # whose third discount is 3 - 4 * 0.5 * 3 / 2
    assert estimate_discounts({(): dict(enumerate(counts))}) == FALLBACK


def test_next_tokens():
    model = NgramModel(
        map(list, ["정말 재미있는 영화", "재미있는 영화관", "영어"]), NgramSettings(4)
    )
    beginning = list("정말 재미있는 영")
    (token, probability), *others = model.next_tokens(beginning, 3)
    assert token == "화" and len(others) == 2 and probability > others[0][1]
    assert probability == pytest.approx(model.probability("화", tuple("는 영")))
    every = model.probabilities(beginning)
    assert every.sum() == pytest.approx(1) and every.argmax() == model.tokens.index("화")
    # Before any token a text begins.
    expected = [model.probability(token, (START,) * 3) for token in model.tokens]
    np.testing.assert_allclose(model.probabilities([]), expected)


def test_figures_of_texts():
    model = NgramModel(TEXTS, NgramSettings(2, min_count=2))
    assert model.known("of") == model.known("zebra") == "<unk>"
    figures = evaluate_ngrams(model, ["the zebra", "dull"], str.split)
    steps = [
        ("the", START),
        ("<unk>", "the"),
        ("</s>", "<unk>"),
        ("dull", START),
        ("</s>", "dull"),
    ]
    nats = -sum(math.log(model.probability(token, (before,))) for token, before in steps)
    assert figures == {
        "texts": 2,
        "characters": 15,
        "unknown_share": 1 / 5,
        "tokens": 5,
        "cross_entropy": pytest.approx(nats / 5),
        "perplexity": pytest.approx(math.exp(nats / 5)),
        "bits_per_character": pytest.approx(nats / math.log(2) / 15),
    }


def test_a_vocabulary_shares_what_is_left_for_unseen_tokens():
    model = NgramModel([["a", "b"]], NgramSettings(2), vocabulary=["a", "b", "c", "d"])
    assert model.tokens == ["a", "b", "c", "d", "<unk>", "</s>"]
    assert model.probability("c", ("a",)) == model.probability("d", ("a",)) > 0
    with pytest.raises(InputError, match="min_count=3"):
        NgramModel([["a", "b"]], NgramSettings(min_count=3))
