"""Words of labels, and prompts without room."""

import pytest

from tfnlp.generation.few_shot_evaluation import (
    check_apart,
    check_room,
    label_words,
    without_texts,
)
from tfnlp.utils.errors import InputError


def test_words_of_labels():
    assert label_words(["0", "1"], None) == {"0": "0", "1": "1"}
    assert label_words(["0", "1"], ["1=good", " 0 = very bad"]) == {"0": "very bad", "1": "good"}
    for given, message in (
        (["0=bad"], "^label_words=0=bad leaves out '1'; give each label a word of its own"),
        (["0=bad", "1=bad"], "has one word for two labels"),
        (["2=bad"], "^label_words='2=bad' must be a label and its word, such as 0=good; the lab"),
        (["0"], "^label_words='0' must be a label and its word"),
    ):
        with pytest.raises(InputError, match=message):
            label_words(["0", "1"], given)


def test_labels_of_the_same_tokens_are_refused():
    check_apart(["good", "very good", "bad"], [[5], [6, 5], [7]])
    with pytest.raises(InputError, match=r"The labels '좋음' and '나쁨' have the same tokens"):
        check_apart(["좋음", "a", "나쁨"], [[1], [3], [1]])
    with pytest.raises(InputError, match="The label '☺' has no tokens"):
        check_apart(["a", "☺"], [[3], []])


def test_texts_to_label_are_not_drawn_as_shots():
    pool = [("fine", "good"), (" dull ", "bad"), ("slow", "bad")]
    assert without_texts(pool, ["dull", "other"]) == [pool[0], pool[2]]


def test_a_prompt_without_room_for_its_label_is_told_by_its_text():
    check_room([[1] * 8, [1] * 6], 3, 10)
    check_room([[1] * 99], 3, None)
    with pytest.raises(InputError, match=r"^The prompt of text 2 has 9 tokens, .* label 3, which"):
        check_room([[1] * 8, [1] * 9], 3, 10)
