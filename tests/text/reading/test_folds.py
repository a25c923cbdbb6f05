"""Folds of labelled texts, and some texts of each label."""

import collections

import numpy as np
import pytest

from tfnlp.text import Examples, SoftExamples, draw_shots, split_fold
from tfnlp.utils.errors import InputError


def test_folds_part_the_texts_and_have_like_shares_of_labels():
    texts, labels = [str(i) for i in range(40)], [0] * 30 + [1] * 10
    examples = Examples(texts, texts, labels, ["a", "b"])
    seen = []
    for number in range(1, 6):
        train, dev = split_fold(examples, f"{number}/5")
        assert sorted(train.texts + dev.texts) == sorted(texts)
        assert collections.Counter(dev.labels) == {0: 6, 1: 2}
        for part in (train, dev):
            assert part.pairs == part.texts and part.label_names == ["a", "b"]
            assert part.labels == [labels[int(text)] for text in part.texts]
        assert dev.texts == split_fold(examples, f"{number}/5")[1].texts
        seen += dev.texts
    assert sorted(seen) == sorted(texts)


def test_sets_of_labels_and_probabilities_are_parted_too():
    several = Examples([*"abcdef"], None, [(0,), (0, 1)] * 3, ["x", "y"])
    for number in (1, 2, 3):
        assert sorted(split_fold(several, f"{number}/3")[1].labels) == [(0,), (0, 1)]
    rows = np.eye(2, dtype="float32")[[0, 0, 1, 1]]
    soft = SoftExamples([*"abcd"], None, [0, 0, 1, 1], ["x", "y"], rows)
    train, dev = split_fold(soft, "1/2")
    assert dev.probabilities.argmax(1).tolist() == dev.labels and len(train) == 2


@pytest.mark.parametrize("fold", ["0/5", "6/5", "1/1", "1", "a/b", "1/4"])
def test_folds_that_are_not_there_are_refused(fold):
    with pytest.raises(InputError, match=f"fold={fold} "):
        split_fold(Examples([*"abcde"], None, [0, 0, 0, 1, 1], ["x", "y"]), fold)


def test_as_many_texts_of_each_label_are_drawn():
    labels = [0] * 9 + [1] * 4
    examples = Examples([*"abcdefghijklm"], None, labels, ["few", "many"])
    few = draw_shots(examples, 3, seed=1)
    assert few.labels == [0, 0, 0, 1, 1, 1] and few.texts == sorted({*few.texts})
    assert [labels["abcdefghijklm".index(text)] for text in few.texts] == few.labels
    assert few.texts == draw_shots(examples, 3, seed=1).texts
    assert len({*draw_shots(examples, 4, seed=2).texts} - {*few.texts}) > 0
    with pytest.raises(InputError, match="shots=5 is more than the 4"):
        draw_shots(examples, 5)
