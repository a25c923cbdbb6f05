"""Parallel texts of a table, or of two files."""

import gzip

import pytest

from tfnlp.tasks import read_parallel_texts
from tfnlp.utils.errors import InputError

PAIRS = [("a dog", "ein Hund"), ("two men .", "zwei Männer ."), ("영화", "ein Film")]


def test_a_table_and_two_files_hold_the_same_pairs(tmp_path):
    table = "de\tn\ten\n" + "".join(f"{b}\t1\t{a}\n" for a, b in PAIRS)
    (tmp_path / "pairs.tsv").write_text(table, "utf-8")
    with gzip.open(tmp_path / "pairs.tsv.gz", "wt", encoding="utf-8") as file:
        file.write(table)
    for name, side in (("source", 0), ("target", 1)):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS), "utf-8")
    for paths in ("pairs.tsv", "pairs.tsv.gz", ("source", "target")):
        given = tmp_path / paths if isinstance(paths, str) else [tmp_path / p for p in paths]
        found = read_parallel_texts(given, "en", "de")
        assert [*zip(found.sources, found.targets, strict=True)] == PAIRS
    assert found.place(2) == f"{tmp_path / 'source'}, line 3"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"x.tsv": "en\tde\na\tb\na\t \n"}, r"x\.tsv, line 3: 'de' is empty"),
        ({"x.en": "a\n\nc\n", "x.de": "a\nb\nc\nd\n"}, r"x\.en has 3 lines and .*x\.de 4"),
        ({"x.en": "a\n\nc\n", "x.de": "a\nb\nc\n"}, r"x\.en, line 2: the source is empty"),
        ({"x.en": "a\n", "x.de": "a\n", "x.fr": "a\n"}, "not in 3"),
    ],
)
def test_pairs_that_are_none_are_refused_by_file_and_line(files, message, tmp_path):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_parallel_texts([tmp_path / name for name in files], "en", "de")
