"""Named columns of TSV, CSV, JSON and JSON Lines files."""

import csv
import pathlib

from tfnlp.text.json_data import field_text, read_objects
from tfnlp.text.lines import check_file, read_lines
from tfnlp.utils.errors import ColumnError, InputError

FORMATS = (".tsv", ".csv", ".json", ".jsonl", ".txt")
# The csv module limits fields to 131,072 characters by default, and accepts no limit above that of
# a C long.
_LONGEST_FIELD = 2**31 - 1


def read_columns(path, columns, on_read=None):
    """Read columns of a TSV, CSV, JSON or JSON Lines file.

    In JSON, a column may be a path to a nested field, such as "labels.real-label".

    Args:
        path: the file.
        columns: the column names.
        on_read: the progress callback of `read_lines`.

    Returns:
        A generator of (place, {column: value}). The place is "line 3", or "example 3" of a JSON
        file, as in error messages.

    Raises:
        InputError: if the file is missing, without data, of an unknown format or not UTF-8, a
            column is missing or duplicated, or a line has the wrong number of columns.
    """
    path = pathlib.Path(path)
    rows = _json_rows if format_of(path) in (".json", ".jsonl") else _table_rows
    row = False
    for row in rows(path, columns, on_read):
        yield row
    if not row:
        raise InputError(f"{path} holds no examples; it needs at least one line of data.")


def read_header(path):
    """Return the column names of a TSV or CSV file, or all field names in a JSON file."""
    path = pathlib.Path(path)
    if format_of(path) in (".json", ".jsonl"):
        return list(dict.fromkeys(name for _, value in _objects(path) for name in value))
    return _header(_records(path))


def format_of(path):
    """Return the format of a file by its name, one of `FORMATS`.

    Raises:
        InputError: if there is no such file, or its name has another ending.
    """
    check_file(path)
    suffix = pathlib.Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in FORMATS:
        raise InputError(
            f"{path} must end in one of {', '.join(FORMATS)} (and .gz, if gzipped) to tell "
            "its format."
        )
    return suffix


def _json_rows(path, columns, on_read):
    for place, value in _objects(path, on_read):
        yield place, {column: field_text(path, place, value, column) for column in columns}


def _objects(path, on_read=None):
    return read_objects(path, format_of(path) == ".jsonl", on_read)


def _table_rows(path, columns, on_read):
    records = _records(path, on_read)
    header = _header(records)
    places = {column: _place(path, header, column) for column in columns}
    for number, record in records:
        if not record and len(header) == 1:
            record = [""]  # an empty text; with more columns, an empty line is skipped
        if not record:
            continue
        if len(record) != len(header):
            raise InputError(
                f"{path}, line {number}: {len(record)} columns, but the header has "
                f"{len(header)} ({', '.join(header)})."
            )
        yield f"line {number}", {column: record[place] for column, place in places.items()}


def _header(records):
    """Return the first non-empty record."""
    return next((record for _, record in records if record), [])


def _records(path, on_read=None):
    """Yield (line number, values) of a TSV or CSV file; an empty list for an empty TSV line."""
    suffix = format_of(path)
    if suffix == ".txt":
        raise InputError(f"{path} has no columns; give a .tsv, .csv, .json or .jsonl file.")
    if suffix == ".csv":
        yield from _csv_records(path, read_lines(path, on_read))
    else:
        for number, line in read_lines(path, on_read):
            yield number, line.split("\t") if line else []


def _csv_records(path, lines):
    last = [0]

    def texts():
        for last[0], text in lines:
            yield text + "\n"

    csv.field_size_limit(_LONGEST_FIELD)
    # In strict mode a stray quote is an error; otherwise the field would swallow the file.
    # Quotes count after a space too, as people write "a, b" by hand.
    reader = csv.reader(texts(), strict=True, skipinitialspace=True)
    while True:
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as e:
            raise InputError(f"{path}, line {last[0]}: not valid CSV ({e}).") from None
        yield last[0], record


def _place(path, header, column):
    if column not in header:
        raise ColumnError(
            f"{path} has no column {column!r}; its header (line 1) has {', '.join(header)}.",
            column,
        )
    if header.count(column) > 1:
        raise InputError(f"{path} has two columns {column!r}; rename one.")
    return header.index(column)
