"""Texts with the place that each comes from."""

import pathlib

from tfnlp.text.reading.readers import has_columns, read_columns, read_lines
from tfnlp.utils.errors import InputError


def read_located_texts(paths, column="text"):
    """Return the (text, place) of files and folders, such as ("milk", "notes.txt, line 3").

    Args:
        paths: tables in a format of `read_columns`, or files with a text on each line that is not
            blank, or folders of .txt and .md files, each of which is a text.
        column: of the texts, in tables.

    Raises:
        InputError: as in `read_columns` and `read_lines`, and for a folder without such files.
    """
    return [row for path in paths for row in _texts_of(pathlib.Path(path), column)]


def _texts_of(path, column):
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in (".txt", ".md"))
        if not files:
            raise InputError(f"{path} has no .txt or .md file; give a folder with texts.")
        return (("\n".join(text for _, text in read_lines(file)), str(file)) for file in files)
    if has_columns(path):
        rows = read_columns(path, [column])
        return ((row[column], f"{path}, {place}") for place, row in rows)
    lines = read_lines(path)
    return ((text, f"{path}, line {number}") for number, text in lines if text.strip())
