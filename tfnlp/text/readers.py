"""Labelled texts from TSV, CSV, JSON and JSON Lines files, plain or gzipped."""

import dataclasses
import math
import pathlib

from tfnlp.text.columns import FORMATS, format_of, read_columns, read_header
from tfnlp.text.json_data import read_json_data
from tfnlp.text.lines import read_lines
from tfnlp.utils.errors import InputError

__all__ = [
    "FORMATS",
    "Examples",
    "check_label_names",
    "read_columns",
    "read_every_text",
    "read_examples",
    "read_header",
    "read_json_data",
    "read_lines",
]

# File name endings with columns; in other files a line is a text.
TABLES = (".tsv", ".csv", ".json", ".jsonl")


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
    line. An empty line is an empty text if there is only one column, else it is skipped. In JSON a
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
        InputError: if the file is missing, empty, of an unknown format or not UTF-8; if a column
            is missing, or requested of a `.txt` file; if a line has the wrong number of columns,
            an empty label, a label that is not in `label_names`, or, without those, a label that
            is the same number as another in a different spelling (1 and 1.0).
    """
    path = pathlib.Path(path)
    columns = [c for c in (text_column, pair_column, label_column) if c]
    if format_of(path) == ".txt":
        if pair_column or label_column:
            raise InputError(
                f"{path} has no column {pair_column or label_column!r}, as each line of a .txt "
                "file is a text; give a .tsv, .csv, .json or .jsonl file, or ask for no column."
            )
        return Examples([text for _, text in read_lines(path)])
    texts, pairs, labels = [], [], []
    for place, row in read_columns(path, columns):
        texts.append(row[text_column])
        if pair_column:
            pairs.append(row[pair_column])
        if label_column:
            label = row[label_column].strip()
            if not label:
                raise InputError(
                    f"{path}, {place}: {label_column} is empty; give each text a label."
                )
            labels.append((place, label))
    examples = Examples(texts, pairs if pair_column else None)
    if label_column:
        examples.label_names = list(label_names or _label_names(path, labels))
        examples.labels = _label_ids(path, labels, examples.label_names)
    return examples


def read_every_text(path, column="text"):
    """Return a generator of all texts of a file in order, including empty ones.

    The order and count match those of a parallel file.

    Args:
        path: a .tsv, .csv, .json or .jsonl file, or another one with a text on each line; each may
            end in .gz.
        column: the column of the texts, if there are columns.

    Returns:
        A generator of strings.

    Raises:
        InputError: as in `read_columns` and `read_lines`.
    """
    path = pathlib.Path(path)
    if path.name.lower().removesuffix(".gz").endswith(TABLES):
        return (row[column] for _, row in read_columns(path, [column]))
    return (text for _, text in read_lines(path))


def check_label_names(names, least=1):
    """Raise an InputError for fewer than `least` labels, or an empty or duplicate one."""
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
            f"There must be at least {least} labels; given: {', '.join(names) or 'none'}."
        )


def check_positive_label(label_names, monitor, positive_label):
    """Raise an InputError for a missing or unknown positive label.

    Args:
        label_names: the classes; None if they are not known yet.
        monitor: the score that selects the best epoch.
        positive_label: the class that `f1` scores, or None.
    """
    if monitor == "f1" and positive_label is None:
        raise InputError(
            "monitor=f1 scores one class; name it as `positive_label`, or take "
            "monitor=macro_f1, the mean over classes."
        )
    names = [str(name).strip() for name in label_names or []]
    if positive_label is not None and names and str(positive_label) not in names:
        raise InputError(
            f"positive_label={positive_label} is not one of the labels ({', '.join(names)})."
        )


def as_number(text):
    """Return a text as a number.

    Raises:
        ValueError: if it is not a number; unlike `float`, "1_0" is not one.
    """
    if "_" in text:
        raise ValueError(f"{text!r} is not a number.")
    return float(text)


def _label_names(path, labels):
    """Return the labels of a file, sorted, by number if all are numbers."""
    names = sorted({label for _, label in labels})
    try:
        numbers = [as_number(name) for name in names]
    except ValueError:
        return names
    if not all(map(math.isfinite, numbers)):  # "nan" cannot be sorted among numbers
        return names
    spellings = {}
    for place, label in labels:
        first = spellings.setdefault(as_number(label), label)
        if label != first:
            raise InputError(
                f"{path}, {place}: label {label!r} is the number of label {first!r}; write "
                "them alike, or give all labels."
            )
    return sorted(names, key=as_number)


def _label_ids(path, labels, names):
    check_label_names(names)
    ids = {str(name).strip(): i for i, name in enumerate(names)}
    for place, label in labels:
        if label not in ids:
            shown = ", ".join(list(ids)[:20])
            raise InputError(
                f"{path}, {place}: label {label!r} is not one of the labels ({shown}), which are "
                "those of the model or of `labels`, or without them of the training file."
            )
    return [ids[label] for _, label in labels]
