"""What a training says of its examples before it begins."""

import pytest

from tfnlp.tasks import Classification, MultiLabelClassification, Regression, Tagging
from tfnlp.tasks.data_summary import doubtful_labels, summarise
from tfnlp.tasks.multiple_choice import Choices, MultipleChoice
from tfnlp.tasks.parallel_texts import ParallelTexts
from tfnlp.tasks.regression import ScoredExamples
from tfnlp.tasks.tagging import TaggedSentences
from tfnlp.text.reading.readers import Examples

PAIRS = Examples(["a", "a", "b"], ["x", "y", "x"], [0, 0, 1])
OTHER_PAIRS = Examples(["a", "b", "b"], ["x", "y", "x"], [1, 1, 0])
NAMES = [f"l{i:02}" for i in range(13)]
MANY = Examples([str(i) for i in range(14)], labels=[0, *range(13)])


@pytest.mark.parametrize(
    ("task", "train", "said"),
    [
        (Classification(["no", "yes"]), PAIRS, "3 examples (no 2, yes 1)"),
        (Classification(NAMES), MANY, "(l00 2, l01 1"),
        (Classification(NAMES), MANY, "l09 1, and 3 further labels)"),
        (
            MultiLabelClassification(["p", "q"]),
            Examples(["a", "b"], labels=[(0, 1), (0,)]),
            "(p 2, q 1)",
        ),
        (Tagging(["O", "B-x"]), TaggedSentences([["a", "b"]], [["O", "O"]]), "1 example (O 2)"),
        (Regression(), ScoredExamples(["a", "b"], None, [0.5, 4.25]), "2 examples (0.5 to 4.25)"),
        (MultipleChoice(), Choices(["a"], [["b", "c"]], [0]), "1 example; dev"),
    ],
)
def test_examples_and_labels_are_counted(task, train, said):
    assert said in summarise(task, {"train": train, "dev": train})[0]


def test_examples_in_common_are_those_of_the_same_texts():
    splits = {"train": PAIRS, "dev": OTHER_PAIRS, "test": Examples(["c"], ["x"], [0])}
    line, (doubt,) = summarise(Classification(["no", "yes"]), splits)
    assert "dev: 3 examples (yes 2, no 1), 2 of them in train; test: 1 example (no 1)" in line
    assert doubt.startswith("2 of the 3 examples of `dev`")
    pairs = ParallelTexts(["a"], ["b"])
    assert "1 of them in train" in summarise(None, {"train": pairs, "dev": pairs})[0]


def test_labels_that_are_probably_slips_are_told():
    for names, word in (
        (["neg", "Pos", "pos"], "'Pos' and 'pos'"),
        (["0.1", "0.9"], "such as 0.1"),
        (["neg", "pos", "pos|fun"], "'pos|fun' is one label"),
        (["a", "a, b"], "'a, b' is one label"),
    ):
        (sentence,) = doubtful_labels(names)
        assert word in sentence
    assert not doubtful_labels(["0", "1.0", "-1", "inf", "news, sports", "B-PER"])
