"""Prediction tasks: how each reads inputs and compares answers."""

import dataclasses
import json

import pytest

from tfnlp.pipelines import Columns, Inputs, prediction_task
from tfnlp.pipelines.pipeline import Classification, Labels
from tfnlp.utils.errors import InputError

TAGS = ["O", "B-x", "I-x"]


def read_inputs(kind, path, labels=None, columns=None):
    return prediction_task(kind, labels).read(path, columns)


def given_inputs(kind, *texts, **more):
    return prediction_task(kind).inputs_of(*texts, **more)


def test_texts_given_one_by_one():
    assert given_inputs("classifier", ["a", "b"]) == Inputs(["a", "b"])
    assert given_inputs("scorer", ["a"], ["b"]) == Inputs(["a"], ["b"])
    assert given_inputs("answerer", ["a"], (), ["p ?", "q ?"]) == Inputs(["p ?", "q ?"], ["a"] * 2)
    assert given_inputs("chooser", ["a"], ending=["x", "y"]) == Inputs(["a"], [["x", "y"]])
    for arguments, said in (
        (("tagger", ["a"], ["b"]), "takes `text` alone; given are 1 of `text`"),
        (("scorer", ["a"], (), ["q"]), "1 of `question`"),
        (("scorer", ["a"], (), (), ["x"]), "1 of `ending`"),
        (("answerer", ["a"]), "given are 1 of `text`"),
        (("chooser", ["a"], (), (), ["x"]), "1 of `ending`"),
        (("classifier", ["a"], ["b", "c"]), "2 of `pair`"),
    ):
        with pytest.raises(InputError, match=said):
            given_inputs(*arguments)


def test_files_of_texts_alone_and_of_other_labels(tmp_path, caplog):
    path = tmp_path / "a.txt"
    path.write_text("a film\n정말\n", encoding="utf-8")
    for kind in ("classifier", "scorer", "tagger"):
        assert read_inputs(kind, path, ["bad", "good"]) == Inputs(["a film", "정말"])
    path = tmp_path / "a.tsv"
    path.write_text("sentence\tlabel\na\t1\nb\t0\n")
    labels = ["bad", "good"]
    assert read_inputs("classifier", path, labels) == Inputs(["a", "b"])
    assert "No score" in caplog.text and "label '1' is not one of the labels" in caplog.text
    caplog.clear()
    with pytest.raises(InputError, match="no column 'text'"):
        read_inputs("classifier", path, labels, Columns(text="text"))
    assert not caplog.text
    assert read_inputs("classifier", path, ["0", "1"]).gold == ["1", "0"]
    assert read_inputs("classifier", path, ["0", "1"], Columns(label="")).gold is None
    with pytest.raises(InputError, match="'1' is not one of the labels"):
        read_inputs("classifier", path, labels, Columns(label="label"))
    assert read_inputs("tagger", path, ["O", "B-x"]) == Inputs(["a", "b"])
    path.write_text("question\tcontext\nq ?\tthe film\n")
    assert read_inputs("answerer", path) == Inputs(["q ?"], ["the film"])


def test_a_table_of_probabilities_is_read_again_without_labels(tmp_path, caplog):
    task = prediction_task("multi-label classifier", ["bad", "good"])
    path = tmp_path / "a.jsonl"
    row = {"sentence": "a", "bad": 0.1, "good": 0.9}
    path.write_text(json.dumps(row))
    assert task.read(path) == Inputs(["a"])
    assert "No score: " in caplog.text and "column 'bad' has '0.1'" in caplog.text
    with pytest.raises(InputError, match=r"column 'bad' has '0\.1'"):
        task.read_labelled(path)
    with pytest.raises(InputError, match="no labels of a multi-label classifier"):
        task.read_labelled(path, Columns(label=""))
    caplog.clear()
    for more, gold in (
        ({"labels": ["good"]}, [["good"]]),  # a column of names goes first
        ({"label": "good"}, [["good"]]),
        ({"labels": 7, "bad": 1, "good": 0}, [["bad"]]),  # unless it has others
        ({"labels": 7, "label": "bad"}, [["bad"]]),
    ):
        path.write_text(json.dumps(row | more))
        assert task.read(path) == Inputs(["a"], None, gold)
    assert not caplog.text
    path.write_text(json.dumps(row | {"labels": 7}))
    assert task.read(path).gold is None and "label '7' is not one of" in caplog.text


@pytest.mark.parametrize(
    ("text", "tagged"),
    [
        ("the\tO\nfilm\tB-x\n\nthe plot\tO\n", True),
        ("the film\nis not dull\n\n정말\n", False),
        ("the O\nfilm B-y\n", None),
    ],
)
def test_a_text_file_of_a_tagger_may_hold_tags(text, tagged, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(text, encoding="utf-8")
    texts = Inputs(text.split("\n")[:-1])
    if tagged is None:
        with pytest.raises(InputError, match=r"a\.txt may have a word and its tag on each line"):
            read_inputs("tagger", path, TAGS)
    else:
        found, as_tags = read_inputs("tagger", path, TAGS), Columns(tagged=True)
        assert found == (read_inputs("tagger", path, TAGS, as_tags) if tagged else texts)
        assert (found.gold is not None) == tagged
    assert read_inputs("tagger", path, TAGS, Columns(tagged=False)) == texts
    assert read_inputs("tagger", path, TAGS, Columns(text="sentence")) == texts
    if tagged is None:
        with pytest.raises(InputError, match=r"line \d: .*tag"):
            read_inputs("tagger", path, TAGS, Columns(tagged=True))


def test_a_label_that_the_model_lacks_is_named(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text("sentence\tlabel\na fine film\tgood\na dull one\tpoor\n")
    with pytest.raises(InputError, match=r"line 3: label 'poor' is not one of"):
        prediction_task("classifier", ["bad", "good"]).read_labelled(path)


def test_an_embedder_gives_no_answers(tmp_path):
    for read, argument in ((given_inputs, ["a"]), (read_inputs, tmp_path)):
        with pytest.raises(InputError, match=r"An embedder gives vectors"):
            read("embedder", argument)


def test_an_empty_label_column_means_no_gold_answers(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("sentence1\tsentence2\tscore\na film\tdull\t1.5\n")
    assert read_inputs("scorer", path).gold == [1.5]
    inputs = read_inputs("scorer", path, columns=Columns(label=""))
    assert inputs == Inputs(["a film"], ["dull"])


@dataclasses.dataclass
class Answer:
    label: str = ""
    tags: tuple = ()
    text: str = ""
    place: int = 0


TAGGED = Answer(tags="BIO")


@pytest.mark.parametrize(
    ("kind", "given", "expected", "figures"),
    [
        ("classifier", [Answer("a"), Answer("b")], [Answer("a"), Answer("a")], {"agreement": 0.5}),
        # Of words, however many a text has.
        ("tagger", [TAGGED, Answer(tags="O")], [TAGGED, Answer(tags="B")], {"agreement": 0.75}),
        ("tagger", [Answer()], [Answer()], {"agreement": 1.0}),
        ("answerer", [Answer(text="x")], [Answer(text="y")], {"agreement": 0.0}),
        ("chooser", [Answer(place=1)], [Answer(place=1)], {"agreement": 1.0}),
        ("scorer", [1.0, 2, 4], [1.0, 3, 2], {"correlation": 0.3273268, "largest_difference": 2}),
        ("scorer", [1.0, 1.0], [1.0, 3.0], {"correlation": None, "largest_difference": 2.0}),
        ("embedder", [[1, 0], [0.6, 0.8]], [[1, 0], [1, 0]], {"cosine": 0.8, "least_cosine": 0.6}),
    ],
)
def test_answers_are_compared_by_task(kind, given, expected, figures):
    task = prediction_task(kind)
    assert task.compare(task.answers(given), task.answers(expected)) == pytest.approx(figures)


def test_rows_have_the_probability_of_each_label():
    shares = {"bad": 0.25, "good": 0.75}
    task = prediction_task("classifier", ["bad", "good"], probabilities=True)
    assert task.header == ("label", "bad", "good", "sentence")
    row = task.row(Classification("good", shares, False), "a film")
    assert row == ["good", "0.250000", "0.750000", "a film"]
    task = prediction_task("multi-label classifier", ["bad", "good"], probabilities=True)
    row = task.row(Labels(("bad", "good"), shares, False), "a film")
    assert row == ["bad,good", "0.250000", "0.750000", "a film"]
    with pytest.raises(InputError, match="needs labels of texts, but the model is of"):
        prediction_task("tagger", ["O"], probabilities=True)
