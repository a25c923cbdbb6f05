"""Labelled texts from TSV, CSV, JSON and JSON Lines files, plain or gzipped."""

import dataclasses
import math
import pathlib

from tfnlp.errors import InputError
from tfnlp.text.columns import FORMATS, format_of, read_columns, read_header
from tfnlp.text.json_data import read_json_data
from tfnlp.text.lines import read_lines

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

# Files that have columns, by what their names end in; of others a line is a text.
TABLES = (".tsv", ".csv", ".json", ".jsonl")


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
    spreadsheets do), `.jsonl` (an object a line), `.json` (a list of objects, or an object with
    that list as its `data`), each with `.gz` or without. TSV and CSV begin with a header line; an
    empty line is an empty text where there is but one column, else left out.
    Of JSON a column may be a path into an object within one, such as "labels.real-label". In a
    `.txt` file every line is a text, without label.

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
    """The texts of a file in their order, empty ones too, as a file beside it has its own.

    Args:
        path: of a .tsv, .csv, .json or .jsonl file, or of another, in which each line is a text;
            or with .gz.
        column: the column of the texts, where there are columns.

    Returns:
        Yields strings.

    Raises:
        InputError: as `read_columns` and `read_lines`.
    """
    path = pathlib.Path(path)
    if path.name.lower().removesuffix(".gz").endswith(TABLES):
        return (row[column] for _, row in read_columns(path, [column]))
    return (text for _, text in read_lines(path))


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


def check_positive_label(label_names, monitor, positive_label):
    """Raise an InputError for a score F1 of no class, or of one that there is not.

    Args:
        label_names: the classes; None where they are not known yet.
        monitor: score that picks the best epoch.
        positive_label: the class of `f1`, or None.
    """
    if monitor == "f1" and positive_label is None:
        raise InputError(
            "monitor=f1 is of one class; name it as `positive_label`, or take "
            "monitor=macro_f1, the mean over classes."
        )
    names = [str(name).strip() for name in label_names or []]
    if positive_label is not None and names and str(positive_label) not in names:
        raise InputError(
            f"positive_label={positive_label} is not one of the labels ({', '.join(names)})."
        )


def as_number(text):
    """Return the number that a text is.

    Raises:
        ValueError: if it is none; `float` alone takes "1_0" for 10.
    """
    if "_" in text:
        raise ValueError(f"{text!r} is not a number.")
    return float(text)


def _label_names(path, labels):
    """The labels of a file, sorted, by number where all are numbers."""
    names = sorted({label for _, label in labels})
    try:
        numbers = [as_number(name) for name in names]
    except ValueError:
        return names
    if not all(map(math.isfinite, numbers)):  # "nan" has no place among numbers
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
