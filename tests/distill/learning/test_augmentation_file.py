"""Augmented files: examples and copies once, resumed after a kill, with a teacher's labels."""

import pytest

from distill.learning import augmentation_file
from distill.learning.augmentation_file import TextColumns, augment_file, labels_in_file
from tests.beam import NO_BEAM
from tfnlp.text import read_examples
from tfnlp.utils.errors import InputError
from tfnlp.utils.shard_work import in_beam


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "train.tsv"
    rows = [f"{i}\ttext {i % 6}\t{i % 2}" for i in range(7)]
    path.write_text("id\tsentence\tlabel\n" + "\n".join(rows) + "\n")
    return path


def doubled(texts, first):
    return [[f"{text}!", f"{text}?", f"{text}!"] for text in texts]


def test_a_file_has_examples_and_copies_once_and_goes_on_after_a_kill(
    source, tmp_path, monkeypatch
):
    monkeypatch.setattr(augmentation_file, "PIECE", 2)
    counts = augment_file(lambda: (doubled, None), source, tmp_path / "whole")
    # The seventh example is the first again: its copies are there already.
    assert counts == {"originals": 7, "copies": 12, "duplicates": 9, "refused": 0}
    whole = (tmp_path / "whole" / "augmented.tsv").read_text()
    assert whole.splitlines()[:4] == [
        "id\tsentence\tlabel",
        "0\ttext 0\t0",
        "0\ttext 0!\t0",
        "0\ttext 0?\t0",
    ]
    assert len(read_examples(tmp_path / "whole" / "augmented.tsv")) == 19
    calls = []

    def stopped(texts, first):
        calls.append(first)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return doubled(texts, first)

    broken = tmp_path / "broken"
    with pytest.raises(KeyboardInterrupt):
        augment_file(lambda: (stopped, None), source, broken, settings={"seed": 1})
    assert not (broken / "augmented.tsv").exists()
    assert len(list(broken.glob("part-*"))) == 2
    with pytest.raises(InputError, match="were made from another `seed`; give another folder"):
        augment_file(lambda: (stopped, None), source, broken, settings={"seed": 2})
    assert augment_file(lambda: (stopped, None), source, broken, settings={"seed": 1}) == counts
    assert calls == [0, 2, 4, 4, 6]
    assert (broken / "augmented.tsv").read_text() == whole
    assert augment_file(lambda: (stopped, None), source, broken, settings={"seed": 1}) == counts
    assert len(calls) == 5
    source.write_text(source.read_text().replace("text 3", "text three"))
    with pytest.raises(InputError, match="were made from another `input file`"):
        augment_file(lambda: (stopped, None), source, broken, settings={"seed": 1})


def load_doubled():
    return doubled, None


def test_a_beam_pipeline_writes_the_same_file(source, tmp_path, monkeypatch):
    pytest.importorskip("apache_beam", reason=NO_BEAM)
    monkeypatch.setattr(augmentation_file, "PIECE", 2)
    for name, map_shards in (("here", None), ("there", in_beam("DirectRunner"))):
        counts = augment_file(load_doubled, source, tmp_path / name, map_shards=map_shards)
        assert counts == {"originals": 7, "copies": 12, "duplicates": 9, "refused": 0}
    here, there = (tmp_path / name / "augmented.tsv" for name in ("here", "there"))
    assert here.read_bytes() == there.read_bytes()


def test_a_teachers_labels_are_those_of_the_file(source):
    assert labels_in_file(["0", "1", "2"], source) == ["0", "1", "2"]
    # "LABEL_1" would be another label beside "1" in the file, and agree with none.
    for labels in (["LABEL_0", "LABEL_1"], None):
        assert labels_in_file(labels, source) == ["0", "1"]
    for labels in (["LABEL_0", "LABEL_1", "LABEL_2"], ["bad", "good"]):
        message = f"has in label 0, 1, but the teacher's labels are {', '.join(labels)}; give"
        with pytest.raises(InputError, match=message):
            labels_in_file(labels, source)
    lines = source.with_suffix(".txt")
    lines.write_text("a film\n")
    with pytest.raises(InputError, match="has no columns; give one of"):
        labels_in_file(["bad", "good"], lines)


def test_labels_are_kept_given_or_checked_and_second_texts_augmented_too(tmp_path):
    source = tmp_path / "train.csv"
    source.write_text('a,b,label\n"one\ttwo",x,good\nthree,y,bad\n')
    asked = []

    def judge(texts, pairs):
        asked.append((texts, pairs))
        return ["good"] * len(texts)

    def copies(texts, first):
        return [[f"{text} {first + i}"] for i, text in enumerate(texts)]

    found = {}
    for name, keep in (("teacher", False), ("agree", True)):
        columns = TextColumns("a", "b", "label")
        counts = augment_file(
            lambda: (copies, judge), source, tmp_path / name, columns, keep, originals=keep
        )
        found[name] = (tmp_path / name / "augmented.tsv").read_text().splitlines()[1:]
        assert counts["refused"] == (1 if keep else 0)
    assert asked[0] == (["one two 0", "three 2"], ["x 1", "y 3"])
    assert found["teacher"] == ["one two 0\tx 1\tgood", "three 2\ty 3\tgood"]
    assert found["agree"] == ["one two\tx\tgood", "one two 0\tx 1\tgood", "three\ty\tbad"]
    with pytest.raises(InputError, match="has no column 'sentence'"):
        augment_file(lambda: (copies, None), source, tmp_path / "none")
