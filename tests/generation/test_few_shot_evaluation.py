"""Words of labels, and prompts without room."""

import pytest

from tfnlp.generation.few_shot_evaluation import (
    check_apart,
    label_words,
    without_texts,
)
from tfnlp.utils.errors import InputError


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
