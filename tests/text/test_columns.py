"""Columns of TSV and CSV files."""

import gzip

import pytest

from tfnlp.text import read_examples
from tfnlp.text.readers import read_columns, read_header
from tfnlp.utils.errors import InputError

TSV = "sentence\tlabel\na film\t1\nso 'good\" it\t0\n"


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


def test_quotes_of_csv_may_follow_a_space(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('label, sentence\n1, "a ""fine"", film"\n0,  "two\n lines"\n1, plain \n')
    examples = read_examples(path)
    assert examples.texts == ['a "fine", film', "two\n lines", "plain "]
    assert examples.labels == [1, 0, 1]


def test_header(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('\n{"b": 1}\n{"a": 1, "b": 2}\n')
    assert read_header(path) == ["b", "a"]
    path = tmp_path / "x.csv"
    path.write_text('\n"a,\nb",c\n')
    assert read_header(path) == ["a,\nb", "c"]


def test_file_names_in_capitals_and_long_fields(tmp_path):
    path = tmp_path / "X.TSV"
    path.write_text(TSV)
    assert read_examples(path).labels == [1, 0]
    path = tmp_path / "X.TSV.GZ"
    path.write_bytes(gzip.compress(TSV.encode()))
    assert read_examples(path).labels == [1, 0]
    path = tmp_path / "x.csv"
    path.write_text(f"sentence,label\n{'a' * 200_000},1\n")
    assert len(read_examples(path).texts[0]) == 200_000


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.tsv", b"", r"x\.tsv is empty"),
        ("x.tsv", b"sentence\tlabel\n", "holds no examples"),
        ("x.tsv", b"text\tlabel\na\t1\n", r"no column 'sentence'; its header .* text, label"),
        ("x.tsv", b"sentence\tlabel\na\t1\nb\n", "line 3: 1 columns, but the header has 2"),
        ("x.tsv", b"sentence\tlabel\na\t1\nb\xff\t1\n", "line 3: byte 2 of the line is not UTF-8"),
        ("x.tsv", b"sentence\tlabel\na\t5\n", r"line 2: label '5' is not one of the labels \(0"),
        ("x.tsv", b"sentence\tlabel\na\t5\n", "of the model or of `labels`, or without them of"),
        ("x.csv", b'sentence,label\n"a,1\n', "not valid CSV"),
        ("x.jsonl", b'{"sentence": "a"}\n', "line 1: no field 'label'"),
        ("x.jsonl", b"{oops\n", "line 1: not valid JSON"),
        ("x.jsonl", b"[1]\n", "line 1: must be a JSON object"),
        ("x.jsonl", b'{"sentence": null, "label": 1}\n', "'sentence' must be a text"),
        ("x.jsonl", b'{"sentence": "a", "label": null}\n', "'label' must be a text"),
        ("x.jsonl", b'{"sentence": "a", "label": NaN}\n', "'label' must be a text or a number"),
        ("x.jsonl", b'{"sentence": 1e999, "label": 1}\n', "'sentence' must be a text or a number"),
        ("x.jsonl", b'{"label": 1, "sentence": "a", "label": 0}\n', "'label' stands there twice"),
        ("x.jsonl", b'\n{"sentence": ' + b"9" * 5000 + b"}\n", "line 2: not valid JSON"),
        ("x.jsonl", b"[" * 100000, "line 1: not valid JSON"),
        ("x.tsv", b"sentence\tlabel\na\t1\nb\t \n", "line 3: label is empty"),
        ("x.tsv", b"sentence\tlabel\tlabel\na\t1\t0\n", "has two columns 'label'"),
        ("x.tsv", b"sentence\tlabel\ra\t1\r", "line 1: there is a CR within the line; save the"),
        ("x.tsv", b"sentence\tlabel\na\t1\nb\rc\t1\n", "line 3: there is a CR within the line"),
        ("x.csv", b'sentence,label\na,1\n"b\rc",1\n', "line 3: there is a CR within the line"),
        ("x.tsv", b"sentence\tlabel\na\t1\nb\0\t1\n", "line 3: there is a NUL byte; take it"),
        ("x.jsonl", b'{"sentence": "a", "label": 1}\n{"a\0": 1}\n', "line 2: there is a NUL byte"),
        ("x.tsv", TSV.encode("utf-16"), "line 1: byte 1 of the line is not UTF-8"),
        ("x.tsv.gz", gzip.compress(TSV.encode("utf-16"), mtime=0), "is not UTF-8"),
        ("x.tsv", TSV.encode("utf-16-le"), "line 1: there is a NUL byte"),
        ("x.txt", b"a\n", "has no column 'label', as each line of a .txt file is a text"),
        ("x.pdf", b"x", "must end in one of"),
        ("x.tsv.gz", b"not gzip", "not a whole gzip file"),
        ("x.tsv.gz", TSV.encode(), r"x\.tsv\.gz: not .* or leave \.gz out of its name if it is"),
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
