"""Labelled examples of TSV, CSV, JSON, JSON Lines and Parquet files."""

import gzip
import json

import pytest

from tfnlp.corpora import read_documents
from tfnlp.text import read_every_text, read_examples
from tfnlp.text.reading import arrow_files
from tfnlp.text.reading.readers import read_columns, read_header
from tfnlp.utils.errors import InputError

TSV = "sentence\tlabel\na film\t1\nso 'good\" it\t0\n"
CSV = 'label,sentence\n1,"a, film"\n0,"two\nlines"\n'
JSONL = '{"sentence": "a film", "label": 1}\n\n{"sentence": "dull", "label": 0}\n'


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("x.tsv", TSV, ["a film", "so 'good\" it"]),
        ("X.TSV", TSV, ["a film", "so 'good\" it"]),
        ("x.tsv.gz", "\ufeff" + TSV.replace("\n", "\r\n"), ["a film", "so 'good\" it"]),
        ("X.TSV.GZ", TSV, ["a film", "so 'good\" it"]),
        ("x.csv", CSV, ["a, film", "two\nlines"]),
        # Quotes may follow a space, and fields be long.
        ("x.csv", 'label, sentence\n1, "a ""b"", c"\n0,  "d\n e"\n', ['a "b", c', "d\n e"]),
        ("x.csv", f"sentence,label\n{'a' * 200_000},1\n b ,0\n", ["a" * 200_000, "b "]),
        ("x.jsonl", JSONL, ["a film", "dull"]),
    ],
)
def test_reads_every_format(name, content, texts, tmp_path):
    path, content = tmp_path / name, content.encode()
    path.write_bytes(gzip.compress(content) if name.lower().endswith("gz") else content)
    examples = read_examples(path)
    assert (examples.texts, examples.labels) == (texts, [1, 0])
    assert examples.label_names == ["0", "1"]
    assert read_examples(path, label_names=["1", "0"]).labels == [0, 1]


def test_reads_plain_text_and_pairs(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("one\ntwo\n")
    assert read_examples(path, label_column=None).texts == ["one", "two"]
    path = tmp_path / "x.json"  # a dot may be a part of a name
    path.write_text(json.dumps({"version": 1, "data": [{"a.b": "one", "a": {"b": "two"}}]}))
    assert read_examples(path, "a.b", label_column=None).texts == ["one"]
    path = tmp_path / "x.tsv"
    path.write_text("a\tb\ty\none\ttwo\tno\n")
    examples = read_examples(path, "a", "b", "y")
    assert (examples.texts, examples.pairs, examples.label_names) == (["one"], ["two"], ["no"])


@pytest.mark.parametrize(
    "labels, names",
    [
        (("10", "9", "2"), ["2", "9", "10"]),
        # "inf" has no place among numbers: the order would change from process to process.
        (("9", "inf", "10"), ["10", "9", "inf"]),
        (("9", "1_0", "10"), ["10", "1_0", "9"]),
    ],
)
def test_numbers_are_sorted_as_numbers(labels, names, tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("sentence\tlabel\n" + "".join(f"t\t{label}\n" for label in labels))
    examples = read_examples(path)
    assert examples.label_names == names
    assert [names[i] for i in examples.labels] == [*labels]


def test_white_space_around_labels_is_stripped(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("sentence\tlabel\na\t1 \nb \t1\n\t 0\n")
    examples = read_examples(path)
    assert (examples.texts, examples.labels) == (["a", "b ", ""], [1, 1, 0])
    assert examples.label_names == ["0", "1"]
    assert read_examples(path, label_names=["1 ", "0"]).labels == [0, 0, 1]
    for names in (["1 ", "0", "1"], ["1", "0", ""]):
        with pytest.raises(InputError, match="all different and none empty"):
            read_examples(path, label_names=names)
    path = tmp_path / "x.jsonl"  # one number is one label
    path.write_text('{"sentence": "a", "label": 1}\n{"sentence": "b", "label": 1.0}\n')
    with pytest.raises(InputError, match=r"line 2: label '1\.0' is the number of label '1'"):
        read_examples(path)
    assert read_examples(path, label_names=["1.0", "1"]).labels == [1, 0]


def test_halves_of_surrogate_pairs_can_be_written(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"sentence": "\\ud83d\\ude00 \\ud83d!", "label": "\\udfff"}\n')
    examples = read_examples(path)
    assert examples.texts == ["\U0001f600 \ufffd!"] and examples.label_names == ["\ufffd"]


def test_missing_files_and_folders_are_named(tmp_path):
    for name in ("none.tsv", "none"):
        with pytest.raises(InputError, match=f"{name} does not exist"):
            list(read_every_text(tmp_path / name))
    with pytest.raises(InputError, match="is a folder"):
        read_examples(tmp_path)


def test_an_empty_line_of_one_column_is_an_empty_text(tmp_path):
    for name in ("x.tsv", "x.csv"):
        path = tmp_path / name
        path.write_text("\nsentence\na film\n\nno\n\n")
        rows = [("line 3", "a film"), ("line 4", ""), ("line 5", "no"), ("line 6", "")]
        found = [(place, row["sentence"]) for place, row in read_columns(path, ["sentence"])]
        assert found == rows
        assert read_header(path) == ["sentence"]
        path.write_text("sentence\tlabel\n\na\t1\n\n".replace("\t", "," if "c" in name else "\t"))
        assert list(read_columns(path, ["label"])) == [("line 3", {"label": "1"})]


def test_header(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('\n{"b": 1}\n{"a": 1, "b": 2}\n')
    assert read_header(path) == ["b", "a"]
    path = tmp_path / "x.csv"
    path.write_text('\n"a,\nb",c\n')
    assert read_header(path) == ["a,\nb", "c"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.tsv", b"", r"x\.tsv is empty"),
        ("x.tsv", b"sentence\tlabel\n", "holds no examples"),
        ("x.tsv", b"text\tlabel\na\t1\n", r"no column 'sentence'; its header .* text, label"),
        ("x.csv", b"sentence;label\na;1\n", r"no column 'sentence'; .* parted by ;"),
        ("x.tsv", b"sentence,label\na,1\n", r"no column 'sentence'; .* parted by commas"),
        ("x.tsv", b"sentence\tlabel\na\t1\nb\n", "line 3: 1 columns, but the header has 2"),
        ("x.tsv", b'sentence\tlabel\n"a\nb"\t1\n', r"line 2: 1 columns.*as \.csv"),
        ("x.tsv", b"sentence\tlabel\na\t1\nb\xff\t1\n", "line 3: byte 2 of the line is not UTF-8"),
        ("x.tsv", b"sentence\tlabel\na\t5\n", r"line 2: label '5' is not one of the labels \(0"),
        ("x.csv", b'sentence,label\nb,1\n"a,1\n\n', "line 3: not valid CSV"),
        ("x.csv", b'sentence,label\na,1\n"b\nc",5\n', "line 3: label '5' is not one"),
        ("x.jsonl", b'{"sentence": "a"}\n', "line 1: no field 'label'"),
        ("x.jsonl", b"{oops\n", "line 1: not valid JSON"),
        ("x.jsonl", b"[1]\n", "line 1: must be a JSON object"),
        ("x.jsonl", b'{"sentence": "a", "label": null}\n', "'label' must be a text"),
        ("x.jsonl", b'{"sentence": "a", "label": NaN}\n', "'label' must be a text or a number"),
        ("x.jsonl", b'{"sentence": "a", "label": ["b"]}\n', "a number; lists .* `multi_label`"),
        ("x.jsonl", b'\n{"sentence": ' + b"9" * 5000 + b"}\n", "line 2: not valid JSON"),
        ("x.tsv", b"sentence\tlabel\tlabel\na\t1\t0\n", "has two columns 'label'"),
        ("x.tsv", b"sentence\tlabel\ra\t1\r", "line 1: there is a CR within the line"),
        ("x.tsv", b"sentence\tlabel\na\t1\nb\0\t1\n", "line 3: there is a NUL byte"),
        ("x.tsv", TSV.encode("utf-16-le"), "line 1: there is a NUL byte"),
        ("x.json", JSONL.encode(), r"line 3: not valid JSON .*end the name in \.jsonl"),
        ("x.json", b'{"a": [{"sentence": "x"}]}', "must hold a list of JSON objects, or"),
        ("x.json", b"[5]", "example 1: must be a JSON object"),
        ("x.json", b"[]", "holds no examples"),
        ("x.json", b'[{"sentence": "x", "label": 7}]', "example 1: label '7' is not one of the"),
        ("x.txt", b"a\n", "has no columns; give one of .tsv, .csv, .json"),
        ("x.pdf", b"x", "must end in one of"),
        ("x.tsv.gz", b"not gzip", "not a whole gzip file"),
        ("x.tsv.gz", gzip.compress(TSV.encode() * 9000, mtime=0)[:-99], "gz, after line [0-9]+: "),
        # Without the time of day, as both processes of the suite must see the same tests.
        ("x.tsv.gz", gzip.compress(TSV.encode() * 1000, mtime=0)[:50], "not a whole gzip file"),
    ],
)
def test_bad_files_are_named(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        read_examples(path, label_names=["0", "1"])
    assert str(path) in str(error.value)


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
    for column, message in (
        ("labels.a", r"no field 'labels\.a'"),
        ("guid.a", "guid has no fields"),
    ):
        with pytest.raises(InputError, match=message):
            read_examples(path, "sentence1", label_column=column)
    second = "line 2" if name == "x.jsonl" else "example 2"
    assert list(read_columns(path, ["guid"]))[1] == (second, {"guid": "a-1"})
    assert read_header(path) == ["guid", "sentence1", "labels"]


def test_parquet_is_read_as_json_is(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs .[parquet]")
    import pyarrow

    rows = [{"sentence": "a film", "label": 1, "meta": {"who": "영화"}}] * 3
    rows.append({"sentence": "dull", "label": 0, "meta": {"who": "b"}})
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    monkeypatch.setattr(arrow_files, "ROWS", 3)
    examples = read_examples(path)
    assert (examples.texts, examples.labels) == (["a film"] * 3 + ["dull"], [1, 1, 1, 0])
    assert list(read_every_text(path, "meta.who")) == ["영화"] * 3 + ["b"]
    assert read_header(path) == ["sentence", "label", "meta"]
    progress = []
    assert len(list(read_documents([path], on_read=progress.append))) == 4
    assert progress == [path.stat().st_size * 3 // 4, *[path.stat().st_size] * 2]
    rows[2] = rows[2] | {"sentence": None}
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    with pytest.raises(InputError, match=r"a\.parquet, example 3: field 'sentence' must be"):
        read_examples(path)
    parquet.write_table(pyarrow.Table.from_pylist(rows[:2] * 3), path, row_group_size=4)
    assert list(read_every_text(path, "meta.who")) == ["영화"] * 6
    packed = tmp_path / "a.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_every_text(packed, "meta.who")) == ["영화"] * 6
    for broken in (packed, path):
        broken.write_bytes(broken.read_bytes()[:-9])
        with pytest.raises(InputError, match=rf"{broken.name} is no whole Parquet file \("):
            read_examples(broken)


def test_parquet_is_a_stream_of_groups_of_rows(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs .[parquet]")
    import pyarrow

    table = pyarrow.table({"sentence": [f"{i} {'x' * 1000}" for i in range(8000)]})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=500, compression="none")
    total, before, held = table.nbytes, pyarrow.total_allocated_bytes(), 0
    texts = read_every_text(tmp_path / "a.parquet", "sentence")
    for number, text in enumerate(texts):
        assert text == table["sentence"][number].as_py()
        held = max(held, pyarrow.total_allocated_bytes() - before)
    assert number == 7999 and held < total / 4


@pytest.mark.parametrize(
    "label, message",
    [
        *(("x|y", "several labels"), ("-", "stands for none"), ("-1", "stands for none")),
        *(("NaN", "none"), ("<NA>", "none"), ("['x', 'y']", "list as text")),
    ],
)
def test_a_label_of_several_or_of_none_is_named(label, message, tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text(f"sentence\tlabel\na\tx\nb\ty\nc\t{label}\n")
    with pytest.raises(InputError, match=f"line 4: .*{message}"):
        read_examples(path, "sentence", label_column="label")
    read = read_examples(path, "sentence", label_column="label", label_names=["x", "y", label])
    assert read.labels == [0, 1, 2]
    # Of two labels "-" may be one, beside "+", and of numbers -1.
    path.write_text("sentence\tlabel\na\t1\nb\t0\nc\t-1\n")
    assert read_examples(path).label_names == ["-1", "0", "1"]
    path.write_text("sentence\tlabel\na\t+\nb\t-\n")
    assert read_examples(path).label_names == ["+", "-"]
