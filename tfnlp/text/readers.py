"""Labelled texts from TSV, CSV and JSON Lines files, plain or gzipped."""

import csv
import dataclasses
import gzip
import json
import pathlib
import zlib

from tfnlp.errors import InputError

FORMATS = (".tsv", ".csv", ".jsonl", ".txt")


@dataclasses.dataclass
class Examples:
    """Texts with their labels.

    Args:
        texts: a list of strings.
        pairs: the second texts, or None.
        labels: a list of ids into `label_names`, or None for a file without labels.
        label_names: the class names in order of their ids.
    """

    texts: list
    pairs: list | None = None
    labels: list | None = None
    label_names: list | None = None

    def __len__(self):
        return len(self.texts)


def read_examples(
    path, text_column="sentence", pair_column=None, label_column="label", label_names=None
):
    """Reads a file of examples by column name.

    The format follows the name: `.tsv` (tab-separated, no quoting), `.csv` (quoted as
    spreadsheets do), `.jsonl` (an object a line), each with `.gz` or without. TSV and CSV
    begin with a header line. In a `.txt` file every line is a text, without label.

    Args:
        path: the file.
        text_column: the column of the text.
        pair_column: the column of the second text of a pair, or None.
        label_column: the column of the label, or None to read no labels.
        label_names: the labels there may be, in order of their ids; those that the file
            holds, sorted (by number where all are numbers), where None.

    Raises:
        InputError: if the file is missing, empty, of an unknown format or not UTF-8; if a
            column is missing; if a line has the wrong number of columns, no label, or a
            label that is not among `label_names`.
    """
    path = pathlib.Path(path)
    columns = [c for c in (text_column, pair_column, label_column) if c]
    if _suffix(path) == ".txt":
        return Examples([text for _, text in read_lines(path)])
    texts, pairs, labels = [], [], []
    for line, row in read_columns(path, columns):
        texts.append(row[text_column])
        if pair_column:
            pairs.append(row[pair_column])
        if label_column:
            labels.append((line, row[label_column]))
    examples = Examples(texts, pairs if pair_column else None)
    if label_column:
        examples.label_names = list(label_names or _label_names(labels))
        examples.labels = _label_ids(path, labels, examples.label_names)
    return examples


def read_columns(path, columns):
    """Some columns of a TSV, CSV or JSON Lines file: yields (line number, {column: value}).

    Raises:
        InputError: if the file is missing, without data, of an unknown format or not UTF-8, a
            column is missing, or a line has the wrong number of columns.
    """
    path = pathlib.Path(path)
    found = False
    for found in _rows(path, _suffix(path), columns):
        yield found
    if not found:
        raise InputError(f"{path} holds no examples; it needs at least one line of data.")


def read_header(path):
    """The names of a TSV or CSV file's columns, or the fields of a JSON Lines file's first."""
    path = pathlib.Path(path)
    suffix = _suffix(path)
    _, line = next(read_lines(path))
    if suffix == ".jsonl":
        try:
            return list(json.loads(line))
        except (json.JSONDecodeError, TypeError):
            raise InputError(f"{path}, line 1: not a JSON object.") from None
    return line.split("\t") if suffix == ".tsv" else next(csv.reader([line]))


def _check_file(path):
    if not path.exists():
        raise InputError(f"{path} does not exist; check the path.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give a file in it.")


def _suffix(path):
    _check_file(path)
    suffix = pathlib.Path(path.name.removesuffix(".gz")).suffix
    if suffix not in FORMATS:
        raise InputError(
            f"{path} must end in one of {', '.join(FORMATS)} (and .gz, if gzipped) to tell "
            "its format."
        )
    return suffix


def read_lines(path):
    """Yields (number, text) of each line, the line end removed.

    Raises:
        InputError: if the file is missing, empty, not UTF-8 or not a whole gzip file.
    """
    path = pathlib.Path(path)
    _check_file(path)
    open_bytes = gzip.open if path.name.endswith(".gz") else open
    number = 0
    try:
        with open_bytes(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as e:
                    raise InputError(
                        f"{path}, line {number}: byte {e.start + 1} of the line is not UTF-8; "
                        "save the file as UTF-8."
                    ) from None
                yield number, text.rstrip("\r\n")
    except (gzip.BadGzipFile, EOFError, zlib.error) as e:
        raise InputError(
            f"{path}, after line {number}: not a whole gzip file ({e}); compress it again."
        ) from None
    if number == 0:
        raise InputError(f"{path} is empty; it needs at least one line of data.")


def _rows(path, suffix, columns):
    """Yields (line number, {column: value}) for the columns asked for."""
    if suffix == ".jsonl":
        yield from _json_rows(path, columns)
        return
    lines = read_lines(path)
    if suffix == ".tsv":
        records = ((number, line.split("\t")) for number, line in lines if line)
    else:
        records = _csv_records(path, lines)
    _, header = next(records, (1, []))
    places = {column: _place(path, header, column) for column in columns}
    for number, record in records:
        if len(record) != len(header):
            raise InputError(
                f"{path}, line {number}: {len(record)} columns, but the header has "
                f"{len(header)} ({', '.join(header)})."
            )
        yield number, {column: record[place] for column, place in places.items()}


def _csv_records(path, lines):
    last = [0]

    def texts():
        for last[0], text in lines:
            yield text + "\n"

    # Strict, so that a stray quote is an error rather than a text that swallows the file.
    reader = csv.reader(texts(), strict=True)
    while True:
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as e:
            raise InputError(f"{path}, line {last[0]}: not valid CSV ({e}).") from None
        if record:
            yield last[0], record


def _json_rows(path, columns):
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as e:
            raise InputError(f"{path}, line {number}: not valid JSON ({e.msg}).") from None
        if not isinstance(value, dict):
            raise InputError(f"{path}, line {number}: must be a JSON object.")
        for column in columns:
            if column not in value:
                raise InputError(
                    f"{path}, line {number}: no field {column!r}; it has {', '.join(value)}."
                )
            if not isinstance(value[column], (str, int, float)):
                raise InputError(
                    f"{path}, line {number}: field {column!r} must be a text or a number."
                )
        yield number, {column: str(value[column]) for column in columns}


def _place(path, header, column):
    if column not in header:
        raise InputError(
            f"{path} has no column {column!r}; its header (line 1) has {', '.join(header)}."
        )
    return header.index(column)


def _label_names(labels):
    names = {label for _, label in labels}
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


def _label_ids(path, labels, names):
    ids = {str(name): i for i, name in enumerate(names)}
    for number, label in labels:
        if label not in ids:
            shown = ", ".join(list(ids)[:20])
            raise InputError(
                f"{path}, line {number}: label {label!r} is not one of the labels ({shown})."
            )
    return [ids[label] for _, label in labels]
