"""Texts with a probability, or votes, for each label, from tables and JSON."""

import dataclasses
import math
import pathlib

import numpy as np

from tfnlp.text.reading.readers import Examples, as_number, read_columns
from tfnlp.utils.errors import InputError

# How far probabilities may be from the sum 1, as they are written with few digits.
TOLERANCE = 0.02


@dataclasses.dataclass
class SoftExamples(Examples):
    """Texts with probabilities of their labels, (texts, C) float32; `labels` are the greatest."""

    probabilities: np.ndarray | None = None


def read_soft_labels(path, text_column, pair_column, label_columns):
    """Read a file of texts with a column for each label, of its probability or its votes.

    A row of whole numbers has votes, of people or models, which are divided by their sum.

    Args:
        path: in a format of `read_examples`.
        text_column, pair_column: as there.
        label_columns: the names of the columns, which are the labels in order of their ids.

    Returns:
        `SoftExamples`.

    Raises:
        InputError: as in `read_columns`; for an entry below 0 or that is no number, and a row
            without votes, or whose probabilities do not sum to 1.
    """
    path, texts, pairs, rows = pathlib.Path(path), [], [], []
    columns = [text_column, *([pair_column] if pair_column else []), *label_columns]
    for place, row in read_columns(path, columns):
        texts.append(row[text_column])
        pairs.append(row.get(pair_column))
        rows.append(_row(path, place, {name: row[name] for name in label_columns}))
    probabilities = np.array(rows, "float32")
    return SoftExamples(
        texts,
        pairs if pair_column else None,
        probabilities.argmax(1).tolist(),
        list(label_columns),
        probabilities,
    )


def mix_labels(examples, labels, weight):
    """Return `SoftExamples` with the labels that are known mixed into their probabilities.

    Args:
        examples: `SoftExamples`.
        labels: the id of the right label of each.
        weight: w; the targets are w p + (1 - w) of the label.
    """
    known = np.eye(len(examples.label_names), dtype="float32")[labels]
    mixed = weight * examples.probabilities + (1 - weight) * known
    return dataclasses.replace(examples, labels=list(labels), probabilities=mixed)


def _row(path, place, entries):
    numbers = [_number(path, place, *entry) for entry in entries.items()]
    total = sum(numbers)
    votes = all(number == int(number) for number in numbers) and total > 0
    if not votes and abs(total - 1) > TOLERANCE:
        shown = ", ".join(f"{name} {entry}" for name, entry in entries.items())
        raise InputError(
            f"{path}, {place}: the probabilities ({shown}) sum to {total:.3g}; they must sum to "
            "1, or be whole numbers of votes."
        )
    return [number / total for number in numbers]


def _number(path, place, name, entry):
    try:
        number = as_number(entry)
    except ValueError:
        number = -1.0
    if not 0 <= number < math.inf:
        raise InputError(
            f"{path}, {place}: column {name!r} has {entry!r}, and must have a probability or a "
            "number of votes."
        )
    return number
