"""Confusion matrices and single answers."""

import pytest

from tfnlp.tasks.confusion_matrix import confusion_matrix, confusion_table, only_answer


def test_labels_are_counted_by_the_true_one():
    matrix = confusion_matrix(["good", "bad", "good"], ["good", "good", "bad"], ["bad", "good"])
    assert matrix == {"labels": ["bad", "good"], "counts": [[0, 1], [1, 1]]}
    header, *rows = confusion_table(matrix)
    assert header == "true \\ predicted  bad  good"
    assert [row.split() for row in rows] == [["bad", "0", "1"], ["good", "1", "1"]]


@pytest.mark.parametrize(
    ("right", "answers", "expected"),
    [
        ([1.0, 3.0], [2.0, 2.01], 2.005),
        ([1.0, 3.0], [2.0, 2.03], None),
        ([1.0, 1.0], [2.0, 2.0], None),
        ([0, 1], [1, 1], 1),
        ([0, 1], [0, 1], None),
        ([], [], None),
    ],
)
def test_one_answer_to_all(right, answers, expected):
    assert only_answer(right, answers) == pytest.approx(expected)
