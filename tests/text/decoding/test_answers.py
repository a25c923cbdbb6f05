"""Answers from the logits of their first and last tokens."""

import itertools

import numpy as np
import pytest

from tfnlp.text.decoding.answers import answer_places, best_answers, window_answers
from tfnlp.text.tokenizers.tokenizer import Encoding


def test_probabilities_of_answers_are_a_softmax_over_all_windows():
    offsets, sources = [(0, 0), (0, 1), (2, 3)], [None, 1, 1]
    windows = [Encoding([1, 2, 3], [0] * 3, False, offsets, sources, None, 0) for _ in range(2)]
    starts = [np.array([2.0, 1.0, 0.0]), np.array([0.5, 3.0, -1.0])]
    ends = [np.array([1.0, 0.5, 2.0]), np.array([0.0, -1.0, 1.5])]
    # a, b and "a b" by hand, each by its better window; none by its worse.
    scores = {"a": max(1.5, 2.0), "a b": max(3.0, 4.5), "b": max(2.0, 0.5), "": min(3.0, 0.5)}
    for null_answers, kept in ((True, list(scores)), (False, ["a", "a b", "b"])):
        total = sum(np.exp(scores[text]) for text in kept)
        for count, order in itertools.product((1, 9), (1, -1)):  # whichever window is the first
            logits = starts[::order], ends[::order]
            (found,) = best_answers(windows, *logits, ["a b"], null_answers, count)
            assert len(found) == min(count, len(kept))
            assert found[0].text == "a b"
            for answer in found:
                assert answer.score == scores[answer.text]
                assert answer.probability == pytest.approx(np.exp(answer.score) / total)
    (found,) = best_answers([], [], [], ["a b"])
    assert (found[0].text, found[0].probability) == ("", 1.0)


def test_an_answer_has_thirty_tokens_at_most():
    offsets = [(0, 0), *((2 * i, 2 * i + 1) for i in range(40))]
    window = Encoding(list(range(41)), [0] * 41, False, offsets, [None, *[1] * 40], None, 0)
    logits = np.ones(41)
    found = window_answers(window, logits, logits, "a " * 40, count=40)
    lengths = [len(answer.text.split()) for answer in found]
    assert (min(lengths), max(lengths)) == (1, 30)
    assert [lengths.count(n) for n in (1, 30)] == [40, 11]


def test_of_equal_scores_the_first_answers_are_kept():
    """Of an int8 file, whose logits are often equal; on phones too."""
    offsets = [(0, 0), *((2 * i, 2 * i + 1) for i in range(60))]
    window = Encoding(list(range(61)), [0] * 61, False, offsets, [None, *[1] * 60], None, 0)
    logits = np.tile([0.0, 1.0], 31)[:61]
    found = window_answers(window, logits, logits, "a " * 60)
    assert [a.start for a in found if a.start + 1 == a.end] == [4 * i for i in range(20)]


def test_an_answer_has_no_white_space_around_it():
    """Of DeBERTa and byte-level BPE, whose tokens begin with the space before them."""
    context = "in  New York \n."
    # "in", two spaces, " New" with one of its own, " York", " \n", "."
    offsets = [(0, 0), (0, 2), (2, 3), (3, 7), (7, 12), (12, 14), (14, 15)]
    window = Encoding(list(range(7)), [0] * 7, False, offsets, [None, *[1] * 6], None, 0)
    logits = np.array([9.0, 0, 5, 4, 3, 5, 0])  # the highest ones at tokens of white space
    found = {(a.start, a.end): a for a in window_answers(window, logits, logits, context)}
    assert len(found) == 10  # the spans of the four tokens with letters
    for (start, end), answer in found.items():
        assert answer.text == context[start:end] == answer.text.strip() != ""
    assert found[4, 12].score == 7.0 and found[4, 12].text == "New York"
    # Two such tokens alone are no answer at all.
    blank = Encoding(
        [0, 1, 2], [0] * 3, False, offsets[:1] + [offsets[2], offsets[5]], [None, 1, 1]
    )
    assert window_answers(blank, logits, logits, context) == []
    # Nor is it learned: the answer of the file may have some around it.
    for answer in ((4, "New York"), (2, "  New York \n"), (3, " New York ")):
        assert answer_places([window], [answer]) == [(3, 4)]
