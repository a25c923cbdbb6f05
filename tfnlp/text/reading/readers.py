"""Labelled texts from TSV, CSV, JSON, JSON Lines, Parquet and Arrow files."""

import csv
import dataclasses
import json
import math
import pathlib
import re

from tfnlp.text.reading.arrow_files import arrow_rows, arrow_schema, is_saved_dataset
from tfnlp.text.reading.lines import check_file, read_lines
from tfnlp.text.reading.text_arguments import well_formed
from tfnlp.utils.errors import ColumnError, InputError
from tfnlp.utils.formatting import counted

# File name endings with columns; in other files a line is a text.
ARROW = (".parquet", ".arrow")
OBJECTS = (".json", ".jsonl", *ARROW)
TABLES = (".tsv", ".csv", *OBJECTS)
FORMATS = (*TABLES, ".txt")
# A list of texts or numbers as text, or its beginning.
LIST_TEXT = re.compile(r"""\[(['"\d].*[\s,].*\]|[^\]]+)""")
# The csv module limits fields to 131,072 characters by default, and accepts no limit above that of
# a C long.
_LONGEST_FIELD = 2**31 - 1


@dataclasses.dataclass
class Examples:
    """Texts with their labels.

    Args:
        texts: a list of strings.
        pairs: the second texts, or None.
        labels: a list of ids into `label_names`, or None without labels.
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
    """Read a file of examples by column names.

    The format follows the file name. `.tsv` is tab-separated without quoting; `.csv` has quotes as
    in spreadsheets; `.jsonl` has an object on each line; `.json` is a list of objects, or an
    object with that list as its `data`. Each may end in `.gz`. TSV and CSV begin with a header
    line. An empty line is an empty text if there is only one column, else it is skipped.
    `.parquet`, `.arrow` and a folder that `datasets` saved need `pyarrow`. In these and in JSON a
    column may be a path to a nested field, such as "labels.real-label". In a `.txt` file every
    line is a text without a label.

    Args:
        path: the file.
        text_column: the column of the text.
        pair_column: the column of the second text of a pair, or None.
        label_column: the column of the label, or None to read no labels.
        label_names: the allowed labels in order of their ids; where None, those in the file,
            sorted (by number if all are numbers). White space around labels is stripped; case
            matters.

    Raises:
        InputError: as in `read_columns`; if a line has an empty label, a label that is not in
            `label_names`, or, without those, a label that is the same number as another in a
            different spelling (1 and 1.0), or that stands for several or none.
    """
    path = pathlib.Path(path)
    columns = [c for c in (text_column, pair_column, label_column) if c]
    if format_of(path) == ".txt" and columns == [text_column]:
        return Examples([text for _, text in read_lines(path)])
    texts, pairs, labels = [], [], []
    for place, row in read_columns(path, columns):
        texts.append(row[text_column])
        if pair_column:
            pairs.append(row[pair_column])
        if label_column:
            labels.append((place, row[label_column].strip()))
    examples = Examples(texts, pairs if pair_column else None)
    if label_column:
        examples.label_names, ids = label_ids(path, labels, label_names)
        examples.labels = [ids[label] for _, label in labels]
    return examples


def read_every_text(path, column="text"):
    """Return a generator of all texts of a file in order, including empty ones.

    The order and count match those of a parallel file.

    Args:
        path: a file with columns, in a format of `read_examples`, or another one with a text on
            each line; each may end in .gz.
        column: the column of the texts, if there are columns.

    Raises:
        InputError: as in `read_columns` and `read_lines`.
    """
    path = pathlib.Path(path)
    if has_columns(path):
        return (row[column] for _, row in read_columns(path, [column]))
    return (text for _, text in read_lines(path))


def read_columns(path, columns, on_read=None, lists=()):
    """Read columns of a file in a format of `read_examples` but .txt.

    In JSON, Parquet and Arrow, a column may be a path to a nested field ("labels.real-label").

    Args:
        path: the file.
        columns: the column names.
        on_read: the progress callback of `read_lines`.
        lists: columns that may hold lists where TSV and CSV do not, which are given as such.

    Returns:
        A generator of (place, {column: value}). The place is "line 3", or "example 3" of a
        JSON, Parquet or Arrow file, as in error messages.

    Raises:
        InputError: if the file is missing, without data, of an unknown format or not UTF-8, a
            column is missing or duplicated, or a line has the wrong number of columns.
    """
    path = pathlib.Path(path)
    row = None
    if holds_objects(path):
        rows = _object_rows(path, columns, on_read, lists)
    else:
        rows = _table_rows(path, columns, on_read)
    for row in rows:
        yield row
    if row is None:
        raise InputError(f"{path} holds no examples; it needs at least one line of data.")


def read_rows(path):
    """Yield each row of a file with columns, a dict of all that it has.

    Entries of TSV and CSV are texts, those of the other formats as they are.

    Raises:
        InputError: as in `read_columns`.
    """
    path = pathlib.Path(path)
    if format_of(path) in ARROW:
        rows = arrow_rows(path, class_names=False)
    elif holds_objects(path):
        rows = read_objects(path)
    else:
        rows = read_columns(path, read_header(path))
    return (row for _, row in rows)


def read_header(path):
    """Return the column names of a TSV or CSV file, or all field names in another one."""
    path = pathlib.Path(path)
    if format_of(path) in ARROW:
        return arrow_schema(path).names
    if holds_objects(path):
        return list(dict.fromkeys(name for _, value in read_objects(path) for name in value))
    return _header(_records(path))


def read_json_data(path):
    """Load a JSON file, plain or gzipped.

    JSON can hold a lone UTF-16 surrogate, for example if a text was cut inside an emoji, which
    cannot be written as UTF-8. Each becomes U+FFFD, so offsets stay valid.

    Raises:
        InputError: as in `read_lines`, and if the file is not JSON.
    """
    return _parse(path, 1, "\n".join(line for _, line in read_lines(path)))


def has_columns(path):
    """Return whether a `Path` is that of a file with columns, by its name, or of a dataset."""
    return _ends_in(path, TABLES)


def format_of(path):
    """Return the format of a file by its name, one of `FORMATS`; ".arrow" of a saved dataset.

    Raises:
        InputError: if there is no such file, or its name has another ending.
    """
    if is_saved_dataset(path):
        return ".arrow"
    check_file(path)
    suffix = pathlib.Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in FORMATS:
        raise InputError(
            f"{path} must end in one of {', '.join(FORMATS)} (and .gz, if gzipped) to tell "
            "its format."
        )
    return suffix


def check_label_names(names, least=1):
    """Raise an InputError for fewer than `least` labels, or an empty or duplicate one."""
    names = [str(name).strip() for name in names or []]
    if len({*names} - {""}) < max(least, len(names)):
        shown = ", ".join(names) or "none"
        raise InputError(
            f"There must be at least {counted(least, 'label')}, all different and none empty; "
            f"given: {shown}."
        )


def as_number(text):
    """Return a text as a number.

    Raises:
        ValueError: if it is not a number; unlike `float`, "1_0" is not one.
    """
    if "_" in text:
        raise ValueError(f"{text!r} is not a number.")
    return float(text)


def as_finite_number(text, place):
    """Return a text as a finite number.

    Args:
        text: of a cell.
        place: file, line and column, for the error message.

    Raises:
        InputError: if it is not one.
    """
    try:
        number = as_number(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{place} {text!r} is not a number; write it as 1.5.")
    return number


def label_ids(path, labels, names=None):
    """Return the names of labels in order of their ids, and the id of each by its name.

    Args:
        path: of a file.
        labels: those of the file, a list of (place, label).
        names: the allowed ones; where None or empty, those of the file, sorted.

    Raises:
        InputError: as in `read_examples`, and without any label.
    """
    names = list(names or _sorted_labels(path, labels))
    try:
        check_label_names(names)
    except InputError as e:
        raise InputError(f"{path}: {e}") from e
    ids = {str(name).strip(): i for i, name in enumerate(names)}
    for place, label in labels:
        if label not in ids:
            raise InputError(
                f"{path}, {place}: label {label!r} is not one of the labels "
                f"({', '.join([*ids][:20])}), which are those of the model or of `labels`, or "
                "without them of the training file."
            )
    return names, ids


def _sorted_labels(path, labels):
    """Return the labels of a file, sorted, by number if all are numbers."""
    names = sorted({label for _, label in labels} - {""})
    _check_names(path, labels, names)
    try:
        numbers = {name: as_number(name) for name in names}
    except ValueError:
        return names
    if not all(map(math.isfinite, numbers.values())):  # "inf" is no number of a class
        return names
    spellings = {}
    for place, label in labels:
        first = spellings.setdefault(numbers.get(label), label)
        if label != first:
            raise InputError(
                f"{path}, {place}: label {label!r} is the number of label {first!r}; write "
                "them alike, or give all labels."
            )
    return sorted(names, key=numbers.get)


def _check_names(path, labels, names):
    """Raise an InputError for several labels in one, and for what stands for none."""
    for name in names:
        parts = [part.strip() for part in re.split(r"[|,;]", name)]
        if len(parts) > 1 and {*parts} <= {*names}:
            message = (
                f"{name!r} has several labels; give one, or `multi_label` and the "
                "`label_separator` between them"
            )
        elif LIST_TEXT.fullmatch(name):
            message = f"{name!r} is of a list as text, as in pandas; write lists as .jsonl"
        elif name == "-" and len(names) > 2:
            message = "the label '-' stands for none, as in SNLI; leave such lines out"
        elif name == "-1" and any(map(str.isalpha, "".join(names))):
            message = "the label '-1' stands for none, as in `datasets`; leave such lines out"
        elif name.lower() in ("nan", "<na>"):
            message = f"the label {name!r} stands for none, as in pandas; leave such lines out"
        else:
            continue
        place = next(place for place, label in labels if label == name)
        raise InputError(f"{path}, {place}: {message}, or name all labels if this is one.")


def holds_objects(path):
    """Return whether a file holds rows of objects, by its name, or is a dataset's folder."""
    return _ends_in(path, OBJECTS)


def _ends_in(path, endings):
    return path.name.lower().removesuffix(".gz").endswith(endings) or is_saved_dataset(path)


def _object_rows(path, columns, on_read, lists):
    for place, value in read_objects(path, on_read):
        yield place, {c: _field(path, place, value, c, c in lists) for c in columns}


def read_objects(path, on_read=None):
    """Yield (place, object) of a file that `holds_objects`."""
    if format_of(path) in ARROW:
        yield from arrow_rows(path, on_read)
        return
    if format_of(path) == ".jsonl":
        values = (
            (f"line {number}", _parse(path, number, line))
            for number, line in read_lines(path, on_read)
            if line.strip()
        )
    else:
        data = read_json_data(path)
        data = data.get("data") if isinstance(data, dict) else data
        if not isinstance(data, list):
            raise InputError(
                f"{path} must hold a list of JSON objects, or one as its 'data'; if it holds an "
                "object a line, end its name in .jsonl."
            )
        values = ((f"example {number}", value) for number, value in enumerate(data, start=1))
    for place, value in values:
        if not isinstance(value, dict):
            raise InputError(f"{path}, {place}: must be a JSON object.")
        yield place, value


def _field(path, place, value, column, may_be_list):
    """Return a field of an object, or a nested one ("labels.real-label"), as a string or list."""
    field = value
    names = [column] if column in value else column.split(".")
    for depth, name in enumerate(names):
        if not isinstance(field, dict) or name not in field:
            parent = ".".join(names[:depth]) or "it"
            has = ", ".join(field) if field and isinstance(field, dict) else "no fields"
            raise ColumnError(f"{path}, {place}: no field {column!r}; {parent} has {has}.", column)
        field = field[name]
    if may_be_list and isinstance(field, list):
        return field
    infinite = isinstance(field, float) and not math.isfinite(field)
    if infinite or not isinstance(field, (str, int, float)):
        rest = "; lists of labels are for `multi_label`" if isinstance(field, list) else ""
        rest = ", or a list of them" if may_be_list else rest
        raise InputError(f"{path}, {place}: field {column!r} must be a text or a number{rest}.")
    return str(field)


def _parse(path, first_line, text):
    """Parse a JSON text that starts at the line `first_line` of a file."""
    try:
        return json.loads(text, object_hook=_well_formed_fields)
    except json.JSONDecodeError as e:
        line, message = first_line + e.lineno - 1, e.msg
        if message == "Extra data" and line > first_line:
            message += "; if each line is an object, end the name in .jsonl"
    except (ValueError, RecursionError) as e:  # too long a number, or too deep nesting
        line, message = first_line, e
    raise InputError(f"{path}, line {line}: not valid JSON ({message}).")


def _well_formed_fields(fields):
    return {k: well_formed(v) if isinstance(v, str) else v for k, v in fields.items()}


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
                f"{len(header)} ({', '.join(header)}).{_hint_of_quotes(path, record)}"
            )
        yield f"line {number}", {column: record[place] for column, place in places.items()}


def _hint_of_quotes(path, record):
    """Return what to do with a field that is quoted over several lines or tabs, as by pandas."""
    if format_of(path) != ".tsv" or not any(field.startswith('"') for field in record):
        return ""
    return " Quotes have no meaning in a .tsv: write a table with quoted fields as .csv."


def _hint_of_separator(path, header):
    """Return what to do with a header that is one column, with what parts columns elsewhere."""
    due = "\t" if format_of(path) == ".tsv" else ","
    others = [mark for mark in ("\t", ",", ";", "|") if mark != due and mark in header[0]]
    if len(header) > 1 or not others:
        return ""
    names = {"\t": "tabs", ",": "commas"}
    return (
        f" Its columns seem to be parted by {names.get(others[0], others[0])}: write a .csv with "
        "commas, or a .tsv with tabs."
    )


def _header(records):
    """Return the first non-empty record."""
    return next((record for _, record in records if record), [])


def _records(path, on_read=None):
    """Yield (line number, values) of a TSV or CSV file; an empty list for an empty line."""
    suffix, lines = format_of(path), read_lines(path, on_read)
    if suffix == ".txt":
        raise InputError(f"{path} has no columns; give one of {', '.join(TABLES)}.")
    if suffix == ".tsv":
        for number, line in lines:
            yield number, line.split("\t") if line else []
        return
    csv.field_size_limit(_LONGEST_FIELD)
    # In strict mode a stray quote is an error; otherwise the field would swallow the file.
    # Quotes count after a space too, as people write "a, b" by hand.
    texts = (f"{text}\n" for _, text in lines)
    reader = csv.reader(texts, strict=True, skipinitialspace=True)
    first = 1  # line of a record, which may have several
    try:
        for record in reader:
            yield first, record
            first = reader.line_num + 1
    except csv.Error as e:
        raise InputError(f"{path}, line {first}: not valid CSV ({e}).") from None


def _place(path, header, column):
    if column not in header:
        raise ColumnError(
            f"{path} has no column {column!r}; its header (line 1) has {', '.join(header)}."
            f"{_hint_of_separator(path, header)}",
            column,
        )
    if header.count(column) > 1:
        raise InputError(f"{path} has two columns {column!r}; rename one.")
    return header.index(column)
