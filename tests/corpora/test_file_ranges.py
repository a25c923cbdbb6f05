"""Ranges of files: together they are the file, each document is in one, and nothing is cut."""

import json

import pytest

from tfnlp.corpora.documents import read_documents
from tfnlp.corpora.file_ranges import FileRange, as_file, plan_ranges
from tfnlp.text.reading.readers import read_columns
from tfnlp.utils.errors import InputError

TEXTS = [f"{'영화 ' * (i % 7)}text {i}" for i in range(200)]


def read_in_ranges(path, size, unit, read):
    shards = plan_ranges([(path, path.stat().st_size)], size / 1e6, unit)
    rows = []
    for ranges in shards:
        for part in ranges:
            with as_file(part) as piece:
                rows.append([] if piece is None else list(read(piece)))
    return rows


@pytest.mark.parametrize("size", [1, 7, 64, 1000, 1_000_000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_document_is_in_one_range(tmp_path, size, end):
    path = tmp_path / "a.txt"
    for unit, text in (
        ("lines", end.join(TEXTS)),
        ("blank_lines", end + (end * 3).join(f"{a}{end}b" for a in TEXTS) + end * 2),
    ):
        path.write_bytes(text.encode())

        def read(piece, unit=unit):
            return read_documents([piece], unit)

        shards = read_in_ranges(path, size, unit, read)
        assert [row for rows in shards for row in rows] == list(read(path))
        filled = sum(map(bool, shards))
        assert filled == 1 if size > 10_000 else filled > (199 if size == 1 else 1)


@pytest.mark.parametrize("size", [1, 50, 500])
def test_every_row_is_in_one_range_with_the_header(tmp_path, size):
    rows = [f"{i}\t{text}\n" for i, text in enumerate(TEXTS)]
    (tmp_path / "a.tsv").write_text("\nid\ttext\n" + "".join(rows))
    rows = [json.dumps({"id": i, "text": text}) for i, text in enumerate(TEXTS)]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    for name in ("a.tsv", "a.jsonl"):

        def read(piece):
            return (row for _, row in read_columns(piece, ["id", "text"]))

        shards = read_in_ranges(tmp_path / name, size, "files", read)
        assert len(shards) > 10
        found = [row for rows in shards for row in rows]
        assert found == [{"id": str(i), "text": text} for i, text in enumerate(TEXTS)]


def test_files_fill_shards_in_order_and_some_are_never_cut(tmp_path):
    paths = [tmp_path / name for name in ("a.txt", "b.txt", "c.txt.gz", "d.csv", "e.txt")]
    files = list(zip(paths, (30, 250, 500, 10, 60), strict=True))
    a, b, c, d, e = paths
    assert plan_ranges(files, 1e-4, "lines") == [
        [FileRange(a, "lines"), FileRange(b, "lines", 0, 70)],
        [FileRange(b, "lines", 70, 170)],
        [FileRange(b, "lines", 170), FileRange(c, "lines")],
        [FileRange(d, "lines"), FileRange(e, "lines")],
    ]
    both = [FileRange(a, "files"), FileRange(b, "files")]
    assert plan_ranges(files[:2], 1e-4, "files") == [both]


@pytest.mark.parametrize(
    ("name", "text", "due"),
    [
        ("a.txt", "a\n\n\nb\n\n", ["a", "", "", "b", ""]),
        ("a.tsv", "sentence\na\n\nb\n\n", ["a", "", "b", ""]),
        ("b.tsv", "sentence\tx\na\t1\n\nb\t2\n\n", ["a", "b"]),
        ("a.jsonl", '{"sentence": "a"}\n\n', ["a"]),
    ],
)
def test_empty_lines_are_texts_where_lines_are(name, text, due, tmp_path):
    (tmp_path / name).write_text(text)
    for size in (1, 2, 5, 100):
        shards = read_in_ranges(
            tmp_path / name, size, "lines", lambda piece: read_documents([piece], "lines")
        )
        assert [row for rows in shards for row in rows] == due, size


def test_a_table_without_line_ends_is_refused_as_a_whole_one_is(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"sentence\ra film\rfine\r")
    with pytest.raises(InputError, match=r"a\.tsv, line 1: there is a CR within the line"):
        read_in_ranges(path, 5, "lines", lambda piece: read_columns(piece, ["sentence"]))
