"""The worst mistakes of classifiers, by hand."""

import numpy as np

from tfnlp.tasks import Classification, MultiLabelClassification, Regression
from tfnlp.tasks.mistakes import worst_mistakes
from tfnlp.tasks.regression import ScoredExamples
from tfnlp.text import Examples


def test_the_least_probable_labels_come_first_and_right_answers_do_not_count():
    p = np.array([[0.4, 0.6], [0.9, 0.1], [0.2, 0.8], [0.55, 0.45]])
    examples = Examples([*"abc", "d" * 400], [*"ABCD"], [0, 1, 1, 1])
    rows = worst_mistakes(Classification(["no", "yes"]), examples, None, {"logits": np.log(p)})
    assert rows == [
        ["text", "second text", "label", "prediction", "probability of the label"],
        ["b", "B", "yes", "no", "0.1"],
        ["a", "A", "no", "yes", "0.4"],
        ["d" * 300 + "…", "D", "yes", "no", "0.45"],
    ]


def test_several_labels_have_the_probability_of_their_set():
    p = np.array([[0.8, 0.6], [0.1, 0.9]])
    examples = Examples(["a", "b"], None, [(0,), (1,)])
    task = MultiLabelClassification(["x", "y"], threshold=0.5)
    rows = worst_mistakes(task, examples, None, {"logits": np.log(p / (1 - p))})
    assert rows[1:] == [["a", "x", "x, y", f"{0.8 * 0.4:.2g}"]]


def test_numbers_have_no_table():
    examples = ScoredExamples(["a"], None, [1.0])
    assert worst_mistakes(Regression(), examples, None, {"logits": np.zeros((1, 1))}) == []
