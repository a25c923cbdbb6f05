"""Labelled examples of TSV, CSV and JSON Lines files."""

import gzip

import pytest

from tfnlp.text import read_examples
from tfnlp.text.readers import as_number
from tfnlp.utils.errors import InputError

TSV = "sentence\tlabel\na film\t1\nso 'good\" it\t0\n"


CSV = 'label,sentence\n1,"a, film"\n0,"two\nlines"\n'


JSONL = '{"sentence": "a film", "label": 1}\n\n{"sentence": "dull", "label": 0}\n'


def test_reads_tsv_without_quoting(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text(TSV)
    examples = read_examples(path)
    assert examples.texts == ["a film", "so 'good\" it"]
    assert examples.labels == [1, 0]
    assert examples.label_names == ["0", "1"]


def test_reads_csv_with_quotes_and_line_breaks(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(CSV)
    assert read_examples(path).texts == ["a, film", "two\nlines"]


def test_reads_json_lines(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(JSONL)
    examples = read_examples(path, label_names=["1", "0"])
    assert examples.texts == ["a film", "dull"]
    assert examples.labels == [0, 1]


def test_reads_gzip_byte_order_mark_and_plain_text(tmp_path):
    path = tmp_path / "x.tsv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + TSV.replace("\n", "\r\n").encode()))
    assert read_examples(path).labels == [1, 0]
    text = tmp_path / "x.txt"
    text.write_text("one\ntwo\n")
    assert read_examples(text, label_column=None).texts == ["one", "two"]


def test_reads_pairs(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("a\tb\ty\none\ttwo\tno\n")
    examples = read_examples(path, "a", "b", "y")
    assert (examples.texts, examples.pairs, examples.label_names) == (["one"], ["two"], ["no"])


def test_numbers_are_sorted_as_numbers(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("sentence\tlabel\n" + "".join(f"t\t{n}\n" for n in (10, 9, 2)))
    assert read_examples(path).label_names == ["2", "9", "10"]
    # "nan" has no place among numbers: the order would change from process to process.
    path.write_text("sentence\tlabel\n" + "".join(f"t\t{n}\n" for n in ("9", "nan", "10")))
    assert read_examples(path).label_names == ["10", "9", "nan"]


def test_white_space_around_labels_is_stripped(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("sentence\tlabel\na\t1 \nb \t1\n\t 0\n")
    examples = read_examples(path)
    assert (examples.texts, examples.labels) == (["a", "b ", ""], [1, 1, 0])
    assert examples.label_names == ["0", "1"]
    assert read_examples(path, label_names=["1 ", "0"]).labels == [0, 0, 1]
    with pytest.raises(InputError, match="label '1' is given twice"):
        read_examples(path, label_names=["1 ", "0", "1"])
    with pytest.raises(InputError, match="One of the labels is empty"):
        read_examples(path, label_names=["1", "0", ""])


def test_one_number_is_one_label(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"sentence": "a", "label": 1}\n{"sentence": "b", "label": 1.0}\n')
    with pytest.raises(InputError, match=r"line 2: label '1\.0' is the number of label '1'"):
        read_examples(path)
    assert read_examples(path, label_names=["1.0", "1"]).labels == [1, 0]


def test_labels_with_underscores_are_no_numbers(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("sentence\tlabel\n" + "".join(f"t\t{n}\n" for n in ("9", "1_0", "10")))
    examples = read_examples(path)
    assert (examples.labels, examples.label_names) == ([2, 1, 0], ["10", "1_0", "9"])
    assert as_number(" 1.5 ") == 1.5
    with pytest.raises(ValueError, match="'1_0' is not a number"):
        as_number("1_0")


def test_halves_of_surrogate_pairs_can_be_written(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"sentence": "\\ud83d\\ude00 \\ud83d!", "label": "\\udfff"}\n')
    examples = read_examples(path)
    assert examples.texts == ["\U0001f600 \ufffd!"] and examples.label_names == ["\ufffd"]


def test_reads_every_real_example(data_dir):
    assert len(read_examples(data_dir / "sst2/train.tsv")) == 6920
    assert len(read_examples(data_dir / "nsmc/train.tsv.gz")) == 20000


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_examples(tmp_path / "none.tsv")
    with pytest.raises(InputError, match="is a folder"):
        read_examples(tmp_path)
