"""JSON and JSON Lines."""

import gzip
import json

import pytest

from tfnlp.text import read_examples
from tfnlp.text.readers import read_columns, read_header
from tfnlp.utils.errors import InputError

JSONL = '{"sentence": "a film", "label": 1}\n\n{"sentence": "dull", "label": 0}\n'


# As KLUE-STS has them.
NESTED = [
    {"guid": "a-0", "sentence1": "비가 온다", "labels": {"label": 4.9, "real-label": 4.857}},
    {"guid": "a-1", "sentence1": "눈이 온다", "labels": {"label": 0.0, "real-label": 0.143}},
]


@pytest.mark.parametrize("name", ["x.json", "x.JSON.GZ", "x.jsonl"])
def test_reads_json_by_column_path(name, tmp_path):
    path = tmp_path / name
    text = json.dumps(NESTED, ensure_ascii=False, indent=4)
    if name == "x.jsonl":
        text = "\n".join(json.dumps(value) for value in NESTED)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("GZ") else text.encode())
    examples = read_examples(path, "sentence1", label_column="labels.real-label")
    assert examples.texts == ["비가 온다", "눈이 온다"]
    assert (examples.label_names, examples.labels) == (["0.143", "4.857"], [1, 0])
    second = "line 2" if name == "x.jsonl" else "example 2"
    assert list(read_columns(path, ["guid"]))[1] == (second, {"guid": "a-1"})
    assert read_header(path) == ["guid", "sentence1", "labels"]


def test_json_may_be_a_list_named_data_and_a_dot_part_of_a_name(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"version": 1, "data": [{"a.b": "one", "a": {"b": "two"}}]}))
    assert read_examples(path, "a.b", label_column=None).texts == ["one"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [{"sentence": "x"}]}, "must hold a list of JSON objects, or one as its 'data'"),
        ([5], "example 1: must be a JSON object"),
        ([{"sentence": "x", "a": 1}], r"example 1: no field 'a\.b\.c'; a has no fields"),
        (
            [{"sentence": "x", "a": {"b": {}}}],
            r"example 1: no field 'a\.b\.c'; a\.b has no fields",
        ),
        (
            [{"sentence": "x", "a": {"b": {"c": []}}}],
            r"field 'a\.b\.c' must be a text or a number",
        ),
        ([{"sentence": "x", "a": {"b": {"c": " "}}}], r"example 1: a\.b\.c is empty"),
        ([{"sentence": "x", "a": {"b": {"c": 7}}}], r"example 1: label '7' is not one of the"),
        ([], "holds no examples"),
    ],
)
def test_bad_json_is_named_by_example(value, message, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(value))
    with pytest.raises(InputError, match=message):
        read_examples(path, label_column="a.b.c", label_names=["0", "1"])


def test_json_lines_named_json_are_refused_with_a_hint(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(JSONL)
    with pytest.raises(InputError, match=r"line 3: not valid JSON .*end the name in \.jsonl"):
        read_examples(path)
