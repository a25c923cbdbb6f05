"""Labelled texts from TSV, CSV and JSON Lines files, plain or gzipped."""

import csv
import dataclasses
import gzip
import json
import math
import pathlib
import re
import zlib

from tfnlp.errors import InputError

FORMATS = (".tsv", ".csv", ".jsonl", ".txt")
# Halves of a pair of UTF-16, which JSON can name alone ("\ud800") and UTF-8 cannot.
_SURROGATE = re.compile("[\ud800-\udfff]")


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
            holds, sorted (by number where all are numbers), where None. White space around
            labels is left out; their case counts.

    Raises:
        InputError: if the file is missing, empty, of an unknown format or not UTF-8; if a
            column is missing, or is asked of a `.txt` file; if a line has the wrong number of
            columns, an empty label, a label that is not among `label_names`, or, without
            those, the number of another label in other letters (1 and 1.0).
    """
    path = pathlib.Path(path)
    columns = [c for c in (text_column, pair_column, label_column) if c]
    if _suffix(path) == ".txt":
        if pair_column or label_column:
            raise InputError(
                f"{path} has no column {pair_column or label_column!r}, as each line of a .txt "
                "file is a text; give a .tsv, .csv or .jsonl file, or ask for no such column."
            )
        return Examples([text for _, text in read_lines(path)])
    texts, pairs, labels = [], [], []
    for line, row in read_columns(path, columns):
        texts.append(row[text_column])
        if pair_column:
            pairs.append(row[pair_column])
        if label_column:
            label = row[label_column].strip()
            if not label:
                raise InputError(
                    f"{path}, line {line}: {label_column} is empty; give each text a label."
                )
            labels.append((line, label))
    examples = Examples(texts, pairs if pair_column else None)
    if label_column:
        examples.label_names = list(label_names or _label_names(path, labels))
        examples.labels = _label_ids(path, labels, examples.label_names)
    return examples


def check_label_names(names, least=1):
    """Raises an InputError unless there are `least` labels, none empty and none given twice."""
    names = [str(name).strip() for name in names or []]
    seen = set()
    for name in names:
        if not name:
            raise InputError("One of the labels is empty; give each a name.")
        if name in seen:
            raise InputError(f"The label {name!r} is given twice; give each label once.")
        seen.add(name)
    if len(names) < least:
        raise InputError(
            f"There must be at least {least} labels to tell apart; given: "
            f"{', '.join(names) or 'none'}."
        )


def read_columns(path, columns):
    """Some columns of a TSV, CSV or JSON Lines file: yields (line number, {column: value}).

    Raises:
        InputError: if the file is missing, without data, of an unknown format or not UTF-8, a
            column is missing, or a line has the wrong number of columns.
    """
    path = pathlib.Path(path)
    rows = _json_rows if _suffix(path) == ".jsonl" else _table_rows
    found = False
    for found in rows(path, columns):
        yield found
    if not found:
        raise InputError(f"{path} holds no examples; it needs at least one line of data.")


def read_header(path):
    """The names of a TSV or CSV file's columns, or of all fields in a JSON Lines file."""
    path = pathlib.Path(path)
    if _suffix(path) == ".jsonl":
        return list(dict.fromkeys(name for _, value in _json_objects(path) for name in value))
    _, header = next(_records(path), (1, []))
    return header


def read_json_data(path):
    """The value in a JSON file, gzipped or not.

    JSON can name half of a pair of UTF-16 alone, as where a text was cut inside an emoji, of
    which no file can be written: each becomes U+FFFD, so that all places stay where they are.

    Raises:
        InputError: as `read_lines`, and if it is not JSON.
    """
    return _parse_json(path, 1, "\n".join(line for _, line in read_lines(path)))


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
                text = text.rstrip("\r\n")
                if number == 1:
                    _check_first_line(path, text)
                yield number, text
    except (gzip.BadGzipFile, EOFError, zlib.error) as e:
        raise InputError(
            f"{path}, after line {number}: not a whole gzip file ({e}); compress it again."
        ) from None
    if number == 0:
        raise InputError(f"{path} is empty; it needs at least one line of data.")


def _check_first_line(path, text):
    """Where a file is not of UTF-8 and lines, its first line shows it."""
    if "\0" in text:
        raise InputError(f"{path}, line 1: there are NUL bytes; save the file as UTF-8.")
    if "\r" in text:
        raise InputError(f"{path}: lines end in CR alone; save the file with LF or CRLF.")


def _table_rows(path, columns):
    """Yields (line number, {column: value}) for the columns asked for."""
    records = _records(path)
    _, header = next(records, (1, []))
    places = {column: _place(path, header, column) for column in columns}
    for number, record in records:
        if len(record) != len(header):
            raise InputError(
                f"{path}, line {number}: {len(record)} columns, but the header has "
                f"{len(header)} ({', '.join(header)})."
            )
        yield number, {column: record[place] for column, place in places.items()}


def _records(path):
    """Yields (line number, list of values) of a TSV or CSV file, the header first."""
    suffix = _suffix(path)
    if suffix == ".txt":
        raise InputError(f"{path} has no columns; give a .tsv, .csv or .jsonl file.")
    if suffix == ".csv":
        yield from _csv_records(path, read_lines(path))
    else:
        yield from ((number, line.split("\t")) for number, line in read_lines(path) if line)


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
    for number, value in _json_objects(path):
        for column in columns:
            if column not in value:
                raise InputError(
                    f"{path}, line {number}: no field {column!r}; it has {', '.join(value)}."
                )
            field = value[column]
            infinite = isinstance(field, float) and not math.isfinite(field)
            if infinite or not isinstance(field, (str, int, float)):
                raise InputError(
                    f"{path}, line {number}: field {column!r} must be a text or a number."
                )
        yield number, {column: str(value[column]) for column in columns}


def _json_objects(path):
    """Yields (line number, object) of a JSON Lines file."""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        value = _parse_json(path, number, line)
        if not isinstance(value, dict):
            raise InputError(f"{path}, line {number}: must be a JSON object.")
        yield number, value


def _parse_json(path, first_line, text):
    """The value of a JSON text that begins in a line of a file."""
    try:
        return json.loads(text, object_pairs_hook=_json_object)
    except json.JSONDecodeError as e:
        line, message = first_line + e.lineno - 1, e.msg
    except (ValueError, RecursionError) as e:  # a field twice, endless digits or brackets
        line, message = first_line, e
    raise InputError(f"{path}, line {line}: not valid JSON ({message}).")


def _json_object(pairs):
    found = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the field {name!r} stands there twice")
        found[name] = _SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value
    return found


def _place(path, header, column):
    if column not in header:
        raise InputError(
            f"{path} has no column {column!r}; its header (line 1) has {', '.join(header)}."
        )
    if header.count(column) > 1:
        raise InputError(f"{path} has two columns {column!r}; give them names of their own.")
    return header.index(column)


def _label_names(path, labels):
    """The labels of a file, sorted, by number where all are numbers."""
    names = sorted({label for _, label in labels})
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return names
    if not all(map(math.isfinite, numbers)):  # "nan" has no place among numbers
        return names
    spellings = {}
    for line, label in labels:
        first = spellings.setdefault(float(label), label)
        if label != first:
            raise InputError(
                f"{path}, line {line}: label {label!r} is the number of label {first!r}; write "
                "them alike, or give all labels."
            )
    return sorted(names, key=float)


def _label_ids(path, labels, names):
    check_label_names(names)
    ids = {str(name).strip(): i for i, name in enumerate(names)}
    for number, label in labels:
        if label not in ids:
            shown = ", ".join(list(ids)[:20])
            raise InputError(
                f"{path}, line {number}: label {label!r} is not one of the labels ({shown})."
            )
    return [ids[label] for _, label in labels]
