"""Texts with any number of labels each, from TSV, CSV, JSON, JSON Lines and Parquet files."""

import dataclasses
import pathlib

from tfnlp.text.reading.readers import Examples, label_ids, read_columns
from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class LabelColumns:
    """Columns of texts and their labels.

    Args:
        text: of the text.
        pair: of the second text of a pair, or None.
        labels: of the names of all labels, which `separator` parts; in JSON also a list.
        separator: a string, not empty.
        each: in place of `labels`, a column for each label, which holds 1 where it applies, else
            0; the names of the columns are the labels.
    """

    text: str = "sentence"
    pair: str | None = None
    labels: str = "labels"
    separator: str = ","
    each: tuple = ()

    def __post_init__(self):
        if not self.separator:
            raise InputError("label_separator is empty; give what parts the labels, such as ','.")


def read_label_sets(path, columns, label_names=None):
    """Read a file of texts with any number of labels each, also none.

    Args:
        path: in a format of `read_examples`.
        columns: `LabelColumns`.
        label_names: the allowed labels in order of their ids; where None, those of
            `columns.each`, or those in the file, sorted.

    Returns:
        `Examples`, whose `labels` are tuples of ids in ascending order.

    Raises:
        InputError: as in `read_columns`; for a label that is not in `label_names`, another entry
            of a label's column than 0 and 1, and a file without any label.
    """
    path, texts, pairs, names = pathlib.Path(path), [], [], []
    read = [columns.text, *filter(None, [columns.pair]), *(columns.each or [columns.labels])]
    for place, row in read_columns(path, read, lists=[columns.labels]):
        texts.append(row[columns.text])
        pairs.append(row.get(columns.pair))
        names.append((place, _labels(path, place, row, columns)))
    if columns.each and label_names and {*columns.each} != {*label_names}:
        raise InputError(
            f"The columns of labels are {', '.join(columns.each)}, and the labels "
            f"{', '.join(label_names)}; give a column for each label."
        )
    occurring = [(place, name) for place, row in names for name in row]
    label_names, ids = label_ids(path, occurring, label_names or columns.each)
    sets = [tuple(sorted({ids[name] for name in row})) for _, row in names]
    return Examples(texts, pairs if columns.pair else None, sets, label_names)


def _labels(path, place, row, columns):
    """Return the names of the labels of a row."""
    if columns.each:
        return [name for name in columns.each if _applies(path, place, name, row[name])]
    entry = row[columns.labels]
    if isinstance(entry, list):
        return [_name(path, place, label, entry.count(label)) for label in entry]
    return [name for part in entry.split(columns.separator) if (name := part.strip())]


def _applies(path, place, name, entry):
    entries = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
    try:
        return entries[entry.strip().lower()]
    except KeyError:
        raise InputError(
            f"{path}, {place}: column {name!r} has {entry!r}, and must have 1 where the label "
            "applies, else 0."
        ) from None


def _name(path, place, label, count):
    """Return the name of a label that a list has `count` times: a text, or a class's number."""
    if not isinstance(label, str) and (type(label) is not int or count > 1):
        raise InputError(
            f"{path}, {place}: a list of labels has {label!r}, and must have their names; of 0 "
            "and 1 for each label, make columns."
        )
    return str(label).strip()
