"""Prompts with examples, draws, normalised likelihoods and words of labels."""

import re

import numpy as np
import pytest

from tfnlp.generation.prompts import (
    Template,
    check_apart,
    cut_at,
    draw_shots,
    label_words,
    normalized,
    without_texts,
)
from tfnlp.utils.errors import InputError

REVIEWS = Template("Review: {text}\nSentiment: {label}.", instruction="Judge.")


def test_prompts_of_none_one_and_a_few_examples():
    assert REVIEWS.prompt("dull") == "Judge.\n\nReview: dull\nSentiment:"
    assert REVIEWS.completion("bad") == " bad"
    shots = [("fine", "good"), ("slow", "bad")]
    assert REVIEWS.prompt("dull", shots) == (
        "Judge.\n\nReview: fine\nSentiment: good.\n\nReview: slow\nSentiment: bad.\n\n"
        "Review: dull\nSentiment:"
    )
    whole = "\n\n".join(REVIEWS.example(*shot) for shot in [*shots, ("dull", "bad")])
    assert f"{REVIEWS.prompt('dull', shots)}{REVIEWS.completion('bad')}." == f"Judge.\n\n{whole}"
    assert REVIEWS.answer_context == "Sentiment:"
    summary = Template("{text}\nTL;DR:{label}", separator="\n---\n")
    assert summary.prompt("a {label} of {text}", [("x", "y")]) == (
        "x\nTL;DR:y\n---\na {label} of {text}\nTL;DR:"
    )
    assert summary.completion("short") == "short"
    assert Template("{text} {label}").prompt("one ") == "one"


@pytest.mark.parametrize(
    "pattern",
    ["Review: {text}", "Sentiment: {label}", "{text} {text} {label}", "{label} {text}"]
    + ["{text}{label}"],
)
def test_a_template_without_its_slots_is_refused(pattern):
    with pytest.raises(InputError, match=re.escape(pattern)):
        Template(pattern)


def test_draws_depend_on_seed_and_draw_alone():
    first = draw_shots(20, 4, seed=1, draw=0)
    assert first == draw_shots(20, 4, seed=1, draw=0)
    assert first != draw_shots(20, 4, seed=1, draw=1)
    assert first != draw_shots(20, 4, seed=2, draw=0)
    assert len({*first}) == 4 and sorted(draw_shots(3, 3, 0, 0)) == [0, 1, 2]
    assert draw_shots(5, 0, 0, 0) == []
    with pytest.raises(InputError, match="shots=6"):
        draw_shots(5, 6, 0, 0)


def test_likelihoods_are_normalized_by_hand():
    likelihoods = np.log([[0.02, 0.03], [0.5, 0.01]])
    found = normalized(likelihoods, [1, 2], np.log([0.1, 0.3]))
    np.testing.assert_allclose(np.exp(found["sum"]), [[0.02, 0.03], [0.5, 0.01]])
    np.testing.assert_allclose(np.exp(found["length"]), [[0.02, 0.03**0.5], [0.5, 0.1]])
    np.testing.assert_allclose(np.exp(found["prior"]), [[0.2, 0.1], [5, 1 / 30]])
    assert [list(x.argmax(-1)) for x in found.values()] == [[1, 0], [1, 0], [0, 0]]


def test_completions_end_at_the_stop_string():
    # With a line break before the label; with a space, the answer is empty.
    assert cut_at("\n a fine film .\nReview: another", "\n", "\n") == "a fine film ."
    assert cut_at("\n a fine film .\nReview: another", "\n", " ") == ""
    assert cut_at("\n\nReview: another", "\n", "\n") == ""
    assert Template("Text: {text}\nIn short:\n{label}").border == "\n"
    assert cut_at(" one, two", "") == "one, two"
    assert cut_at("\n", "\n") == ""


def test_words_of_labels():
    assert label_words(["0", "1"], None) == {"0": "0", "1": "1"}
    assert label_words(["0", "1"], ["1=good", " 0 = very bad"]) == {"0": "very bad", "1": "good"}
    for given in (["0=bad"], ["0=bad", "1=bad"], ["2=bad"], ["0"], ["0=bad", "1="]):
        with pytest.raises(InputError, match=r"must give each of the labels 0, 1 a word of its"):
            label_words(["0", "1"], given)


def test_labels_of_the_same_tokens_are_refused():
    check_apart(["good", "very good", "bad"], [[5], [6, 5], [7]])
    with pytest.raises(InputError, match=r"The labels '좋음' and '나쁨' have the same tokens"):
        check_apart(["좋음", "a", "나쁨"], [[1], [3], [1]])


def test_texts_to_label_are_not_drawn_as_shots():
    pool = [("fine", "good"), (" dull ", "bad"), ("slow", "bad")]
    assert without_texts(pool, ["dull", "other"]) == [pool[0], pool[2]]
