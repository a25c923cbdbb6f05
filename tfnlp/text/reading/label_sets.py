"""Texts with any number of labels each, from TSV, CSV, JSON, JSON Lines and Parquet files."""

import dataclasses
import pathlib

from tfnlp.text.reading.readers import (
    Examples,
    as_number,
    check_label_names,
    field_of,
    field_text,
    holds_objects,
    read_columns,
    read_objects,
)
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
    read = _rows_by_label if columns.each else _rows_of_names
    for place, text, pair, labels in read(path, columns):
        texts.append(text)
        pairs.append(pair)
        names.append((place, labels))
    if columns.each and label_names and {*columns.each} != {*label_names}:
        raise InputError(
            f"The columns of labels are {', '.join(columns.each)}, and the labels "
            f"{', '.join(label_names)}; give a column for each label."
        )
    occurring = _sorted({name for _, row in names for name in row})
    label_names = list(label_names or columns.each or occurring)
    try:
        check_label_names(label_names)
    except InputError as e:
        raise InputError(f"{path}: {e}") from e
    ids = {str(name).strip(): i for i, name in enumerate(label_names)}
    sets = [_ids(path, place, row, ids) for place, row in names]
    return Examples(texts, pairs if columns.pair else None, sets, label_names)


def _rows_by_label(path, columns):
    """Yield the place, the texts and the names of the labels of each row, a column for each."""
    pair = [columns.pair] if columns.pair else []
    for place, row in read_columns(path, [columns.text, *pair, *columns.each]):
        labels = [name for name in columns.each if _applies(path, place, name, row[name])]
        yield place, row[columns.text], row.get(columns.pair), labels


def _applies(path, place, name, entry):
    entries = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
    try:
        return entries[entry.strip().lower()]
    except KeyError:
        raise InputError(
            f"{path}, {place}: column {name!r} has {entry!r}, and must have 1 where the label "
            "applies, else 0."
        ) from None


def _rows_of_names(path, columns):
    """Yield the place, the texts and the names of the labels of each row, all in a column."""
    if not holds_objects(path):
        pair = [columns.pair] if columns.pair else []
        for place, row in read_columns(path, [columns.text, *pair, columns.labels]):
            labels = _split(row[columns.labels], columns.separator)
            yield place, row[columns.text], row.get(columns.pair), labels
        return
    for place, row in read_objects(path):
        labels = field_of(path, place, row, columns.labels)
        if isinstance(labels, list):
            labels = [_name(path, place, label) for label in labels]
        else:
            labels = _split(field_text(path, place, row, columns.labels), columns.separator)
        pair = columns.pair and field_text(path, place, row, columns.pair)
        yield place, field_text(path, place, row, columns.text), pair, labels


def _name(path, place, label):
    """Return the name of a label in a list: a text, or the number of a class."""
    if isinstance(label, bool) or not isinstance(label, str | int):
        raise InputError(
            f"{path}, {place}: a list of labels has {label!r}, and must have their names; of 0 "
            "and 1 for each label, make columns."
        )
    return str(label).strip()


def _sorted(names):
    """Return names of labels in order, by number if all are numbers."""
    try:
        return sorted(names, key=as_number)
    except ValueError:
        return sorted(names)


def _split(entry, separator):
    return [name for part in entry.split(separator) if (name := part.strip())]


def _ids(path, place, names, ids):
    unknown = next((name for name in names if name not in ids), None)
    if unknown is not None:
        raise InputError(
            f"{path}, {place}: label {unknown!r} is not one of the labels "
            f"({', '.join(list(ids)[:20])}), which are those of the model or of `labels`, or "
            "without them of the training file."
        )
    return tuple(sorted({ids[name] for name in names}))
