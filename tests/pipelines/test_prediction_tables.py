"""Tables of predictions, read again: by pyarrow, by `datasets`, and by the readers of labels."""

import csv
import json

import numpy as np
import pytest

from tests.pipelines.test_predictions import FILES
from tfnlp.pipelines import Columns, Inputs, check_table, input_table, prediction_task, write_table
from tfnlp.pipelines.pipeline import Choice, Classification, Labels, TaggedText
from tfnlp.pipelines.prediction_tables import InputTable
from tfnlp.text import LabelColumns, read_examples, read_label_sets, read_soft_labels
from tfnlp.text.decoding.answers import Answer
from tfnlp.text.reading.arrow_files import arrow_schema
from tfnlp.text.reading.readers import read_header, read_rows
from tfnlp.utils.errors import InputError

pyarrow = pytest.importorskip("pyarrow", reason="needs .[parquet]")
parquet = pytest.importorskip("pyarrow.parquet", reason="needs .[parquet]")

OUTPUTS = ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a"]
ROWS = [
    {"id": 7, "sentence": 'a "fine", film', "label": 1, "meta": {"who": "영화"}},
    {"id": 8, "sentence": "dull", "label": 0, "meta": {"who": "b"}},
]
SHARES = [[0.123456789, 0.876543211], [1 - 1e-9, 1e-9]]
FOUND = [
    Classification("good", dict(zip(["bad", "good"], SHARES[0], strict=True)), False),
    Classification("bad", dict(zip(["bad", "good"], SHARES[1], strict=True)), False),
]
CLASSES = {"label": {"names": ["negative", "positive"], "_type": "ClassLabel"}}


def save(path, rows, features=None):
    """Write rows as a Parquet file, or as `datasets` saves them, with its features."""
    table = pyarrow.Table.from_pylist(rows)
    if features:
        metadata = {"huggingface": json.dumps({"info": {"features": features}})}
        table = table.replace_schema_metadata(metadata)
    if path.suffix == ".parquet":
        return parquet.write_table(table, path)
    path.mkdir()
    parts = [table.slice(i, 1) for i in range(len(table))]
    for i, part in enumerate(parts):
        with pyarrow.ipc.new_stream(str(path / f"{i}.arrow"), part.schema) as writer:
            writer.write_table(part)
    files = [{"filename": f"{i}.arrow"} for i in range(len(parts))]
    return (path / "state.json").write_text(json.dumps({"_data_files": files}))


def write(source, output, task, found, columns=None):
    columns = columns or Columns()
    table = input_table(task, task.read(source, columns), source, columns)
    write_table(output, table, task, found)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("source", ["rows.parquet", "rows.jsonl", "rows"])
def test_all_columns_and_probabilities_are_read_again(source, output, tmp_path):
    source, output = tmp_path / source, tmp_path / output
    if source.suffix == ".jsonl":
        source.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        save(source, ROWS, CLASSES)
    write(source, output, prediction_task("classifier", ["bad", "good"], None, None, True), FOUND)
    rows = [*read_rows(output)]
    assert list(rows[0]) == [*ROWS[0], "prediction", "bad", "good"] == read_header(output)
    assert [row["prediction"] for row in rows] == ["good", "bad"]
    soft = read_soft_labels(output, "sentence", None, ["bad", "good"])
    np.testing.assert_allclose(soft.probabilities, np.float32(SHARES), atol=1e-7)
    assert soft.texts == [row["sentence"] for row in ROWS]
    if output.suffix in (".csv", ".tsv"):
        assert [row["id"] for row in rows] == ["7", "8"]
        assert json.loads(rows[0]["meta"]) == ROWS[0]["meta"]
    else:
        assert [{name: row[name] for name in ROWS[0]} for row in rows] == ROWS
    if output.suffix == ".csv":
        assert next(csv.DictReader(output.open(encoding="utf-8")))["sentence"] == 'a "fine", film'
    if "jsonl" not in source.suffix and output.suffix in (".parquet", ""):
        schema = arrow_schema(output)
        assert schema.field("id").type == pyarrow.int64() and b"huggingface" in schema.metadata


def test_classes_of_a_saved_dataset_have_their_names(tmp_path):
    save(tmp_path / "a", ROWS, CLASSES)
    save(tmp_path / "a.parquet", ROWS, CLASSES)
    examples = read_examples(tmp_path / "a")
    assert (examples.label_names, examples.labels) == (["negative", "positive"], [1, 0])
    assert read_examples(tmp_path / "a.parquet").label_names == ["0", "1"]
    assert read_examples(tmp_path / "a" / "1.arrow").texts == ["dull"]
    tags = {"tags": {"feature": {"names": ["O", "B-x"], "_type": "ClassLabel"}, "_type": "List"}}
    save(tmp_path / "tags", [{"tokens": ["a", "film"], "tags": [0, 1]}], tags)
    inputs = prediction_task("tagger", ["O", "B-x"]).read(tmp_path / "tags")
    assert inputs == Inputs([["a", "film"]], None, [["O", "B-x"]])


@pytest.mark.parametrize("output", OUTPUTS)
def test_lists_of_labels_are_read_again(output, tmp_path):
    source, output = tmp_path / "a.csv", tmp_path / output
    source.write_text("sentence,x\na fine film,1\n정말,2\n", encoding="utf-8")
    task = prediction_task("multi-label classifier", ["bad", "good"], {"label_separator": "|"})
    shares = {"bad": 0.75, "good": 0.5}
    found = [Labels(["bad", "good"], shares, False), Labels([], shares, False)]
    write(source, output, task, found)
    assert task.task().settings["label_separator"] == "|"  # which a student keeps
    columns = LabelColumns(labels="prediction", separator="|")
    assert read_label_sets(output, columns, ["bad", "good"]).labels == [(0, 1), ()]
    assert [row["x"] for row in read_rows(output)] == ["1", "2"]
    if output.suffix not in (".csv", ".tsv"):
        assert [row["probabilities"] for row in read_rows(output)] == [[0.75, 0.5], []]


def test_tables_without_labels_have_the_types_of_others(tmp_path):
    """As parts of --shard_mb, which `datasets` reads as one."""
    sets = {"labels": ["bad", "good"], "settings": {"label_separator": "|"}}
    shares, words = {"bad": 0.75, "good": 0.5}, ("the film", [(0, 3), (4, 8)])
    tagger = prediction_task("tagger", ["O", "B-x"])
    for task, full, empty in (
        (prediction_task("multi-label classifier", **sets), ["good"], []),
        (prediction_task("multi-label classifier", **sets, probabilities=True), ["good"], []),
        (tagger, ["O", "B-x"], ["O", "O"]),
    ):
        for name, answer in (("full", full), ("empty", empty)):
            found = Labels(answer, shares, False)
            if task is tagger:
                found = TaggedText(*words, answer, [0.75, 0.5])
            table = InputTable(["sentence"], [{"sentence": "the film"}])
            write_table(tmp_path / f"{name}.parquet", table, task, [found])
        files = [parquet.read_table(tmp_path / f"{name}.parquet") for name in ("full", "empty")]
        assert len(pyarrow.concat_tables(files)) == 2
        assert files[1].to_pylist()[0][task.columns[-1]] in ([], 0.5)


def test_spans_of_tags_answers_and_choices_are_in_the_table(tmp_path):
    for kind in ("tagger", "answerer", "chooser"):
        name, text = FILES[kind]
        (tmp_path / name).write_text(text, encoding="utf-8")
    task = prediction_task("tagger", ["O", "B-x", "I-x"])
    first = TaggedText("the film", [(0, 3), (4, 8)], ["O", "B-x"], [0.75, 0.5])
    second = TaggedText("정말", [(0, 2)], ["O"], [0.5])
    write(tmp_path / FILES["tagger"][0], tmp_path / "b.parquet", task, [first, second])
    row, other = parquet.read_table(tmp_path / "b.parquet").to_pylist()
    assert row["sentence"] == ["the", "fine", "film", "."] and other["gold"] == ["B-x", "O"]
    assert row["prediction"][1] == {"word": "film", "span": [4, 8], "tag": "B-x", "score": 0.5}
    (entity,) = row["entities"]
    assert (entity["label"], entity["start"], entity["end"]) == ("x", 4, 8)
    (tmp_path / "texts.tsv").write_text("x\tsentence\n1\tthe film\n")
    rows = input_table(task, task.read(tmp_path / "texts.tsv"), tmp_path / "texts.tsv").rows
    assert rows == [{"x": "1", "sentence": "the film"}]
    answers = [Answer("a fine plot", 23, 34, 1.0, probability=0.5), Answer("", 0, 0, 0.0)]
    write(tmp_path / "a.json", tmp_path / "b.jsonl", prediction_task("answerer"), answers)
    row, other = map(json.loads, (tmp_path / "b.jsonl").open(encoding="utf-8"))
    assert row["context"][row["start"] : row["end"]] == row["prediction"] == row["gold"][0]
    assert (row["id"], row["probability"], other["prediction"]) == ("q1", 0.5, "")
    text = {"question": ' "film" ?', "context": " the  film\u3000is\na fine plot"}
    (tmp_path / "a.jsonl").write_text(json.dumps(text))
    answer = [Answer("a fine plot", 14, 25, 1.0)]
    for name in ("b.csv", "b.tsv"):
        write(tmp_path / "a.jsonl", tmp_path / name, prediction_task("answerer"), answer)
        (row,) = read_rows(tmp_path / name)
        assert row["context"][int(row["start"]) : int(row["end"])] == row["prediction"]
        assert row["question"] == ' "film" ?' and row["context"].startswith(" the  film\u3000is")
    choices = [Choice(1, "fine", [0.25, 0.75], False), Choice(0, "x", [0.5, 0.5], False)]
    write(tmp_path / "a.tsv", tmp_path / "b.csv", prediction_task("chooser"), choices)
    rows = [*csv.DictReader((tmp_path / "b.csv").open(encoding="utf-8"))]
    assert [(row["prediction"], row["ending"]) for row in rows] == [("1", "fine"), ("0", "x")]
    assert rows[0]["prompt"] == "the film is" and rows[1]["probability"] == "0.5"


def test_datasets_loads_what_was_written_and_what_it_saved_is_read(tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs datasets")
    features = datasets.Features(
        {
            "sentence": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["negative", "positive"]),
        }
    )
    rows = {"sentence": ["a fine film", "dull"], "label": [1, 0]}
    saved = datasets.Dataset.from_dict(rows, features=features)
    saved.save_to_disk(tmp_path / "saved", num_shards=2)
    assert read_examples(tmp_path / "saved").label_names == ["negative", "positive"]
    task = prediction_task("classifier", ["bad", "good"], None, None, True)
    write(tmp_path / "saved", tmp_path / "said", task, FOUND)
    said = datasets.load_from_disk(tmp_path / "said")
    assert said.column_names == ["sentence", "label", "prediction", "bad", "good"]
    assert said.features["label"].names == ["negative", "positive"]
    assert said[0]["prediction"] == "good" and said[0]["good"] == SHARES[0][1]
    datasets.DatasetDict({"train": saved, "test": saved}).save_to_disk(tmp_path / "all")
    with pytest.raises(InputError, match=r"several splits; give one of .*all/train, .*all/test"):
        read_examples(tmp_path / "all")


def test_bad_tables_are_refused_before_the_model_runs(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    for name, message in (
        ("a.xlsx", r"output=.*a\.xlsx must end in \.csv, \.tsv"),
        ("there", "output=.*there exists"),
    ):
        with pytest.raises(InputError, match=message):
            check_table(tmp_path / name)
    task = prediction_task("classifier", ["bad", "good"], None, None, True)
    for name, text, message in (
        ("a.csv", "sentence,good\na,1\n", "two columns are called 'good'"),
        ("a.csv", "sentence,x,x\na,1,2\n", "two columns 'x'"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=message):
            write(tmp_path / name, tmp_path / "b.csv", task, FOUND[:1])
    (tmp_path / "a.jsonl").write_text('{"sentence": "a", "x": 1}\n{"sentence": "b", "x": "c"}\n')
    with pytest.raises(InputError, match=r"b\.parquet cannot hold these columns .* write a \.jso"):
        write(tmp_path / "a.jsonl", tmp_path / "b.parquet", task, FOUND)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "state.json").write_text('{"_data_files": [{"filename": "a.arrow"}]}')
    (tmp_path / "broken" / "a.arrow").write_bytes(b"no")
    with pytest.raises(InputError, match=r"a\.arrow is no whole Arrow file"):
        read_examples(tmp_path / "broken")
    with pytest.raises(InputError, match="there is a folder; give a file in it"):
        read_examples(tmp_path / "there")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"output=a\.parquet needs pyarrow: pip install pyarrow"):
        check_table("a.parquet")
