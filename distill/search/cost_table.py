"""Measured times and sizes of files of a teacher's parts, and what they predict of a student's."""

import csv
import dataclasses
import pathlib

import numpy as np
import scipy.optimize

from tfnlp.utils.errors import InputError
from tfnlp.utils.files import write_text


@dataclasses.dataclass(frozen=True)
class Costs:
    """Time of a text in milliseconds, and size of the file in MB (1e6 bytes)."""

    latency_ms: float
    size_mb: float

    def __str__(self):
        return f"{self.latency_ms:.2f} ms, {self.size_mb:.1f} MB"


@dataclasses.dataclass(frozen=True)
class Setting:
    """Setting that all rows of a table have in common.

    Args:
        device: what the files ran on, such as the name of a processor or a phone.
        model_type: family of the models.
        hidden_dim, head_dim: their width, and that of a head.
        quantization: of the files.
        tokens: that run on one thread, those of the text and the padding to a fixed length.
    """

    device: str
    model_type: str
    hidden_dim: int
    head_dim: int
    quantization: str
    tokens: int


@dataclasses.dataclass(frozen=True)
class Measured:
    """Row of a table: the sizes of a model, and the costs of its file."""

    num_layers: int
    num_heads: int
    intermediate_dim: int
    vocabulary_size: int
    latency_ms: float
    size_mb: float

    @property
    def sizes(self):
        """Numbers of layers, heads, units and tokens, as of a `SubStudent`."""
        return self.num_layers, self.num_heads, self.intermediate_dim, self.vocabulary_size


@dataclasses.dataclass
class CostTable:
    """Measured costs of files, which predict those of others by least squares.

    The time is a + L (b + c N + d F), of L layers with N heads and F feed-forward units; the size
    has a term of the vocabulary too. No coefficient is negative.

    Args:
        setting: a `Setting`.
        rows: a list of `Measured`.
    """

    setting: Setting
    rows: list = dataclasses.field(default_factory=list)

    def predict(self, student):
        """Return the `Costs` of a `SubStudent`."""
        return _predict(self.rows, student)

    def errors(self):
        """Return the error of each row's time as the others predict it, a share of it, (rows,).

        There must be two rows or more.
        """
        shares = []
        for number, row in enumerate(self.rows):
            others = self.rows[:number] + self.rows[number + 1 :]
            shares.append(_predict(others, row).latency_ms / row.latency_ms - 1)
        return np.abs(shares)

    def describe(self):
        """Return a sentence on what the times are, and how well they are predicted."""
        files = "one file" if len(self.rows) == 1 else f"{len(self.rows)} files"
        text = f"Times at {self.setting.tokens} tokens on {self.setting.device}, of {files}"
        if len(self.rows) == 1:
            return f"{text}."
        errors = self.errors()
        return (
            f"{text}; each is predicted by the others within {errors.mean():.1%} in the mean, and "
            f"{errors.max():.1%} at worst."
        )

    def write(self, path):
        """Write the table as a .tsv file with a header."""
        setting = dataclasses.asdict(self.setting)
        rows = [dataclasses.asdict(row) | setting for row in self.rows]
        lines = [NAMES, *([str(row[name]) for name in NAMES] for row in rows)]
        write_text(path, "".join("\t".join(line) + "\n" for line in lines))


def read_table(path):
    """Return the `CostTable` of a file that `CostTable.write` wrote.

    Raises:
        InputError: for a file of other columns or values, and rows of more than one setting.
    """
    with pathlib.Path(path).open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        if reader.fieldnames != NAMES:
            raise InputError(
                f"{path} is no table of costs of this version, which has {', '.join(NAMES)}; make "
                "one by recipes.measure_students."
            )
        lines = [*reader]
    settings, rows = {}, []
    for number, line in enumerate(lines, 2):
        try:
            settings.setdefault(_parsed(Setting, line), number)
            rows.append(_parsed(Measured, line))
        except (TypeError, ValueError) as e:
            raise InputError(f"{path}, line {number}, has a value that is no number: {e}.") from e
    if not rows:
        raise InputError(f"{path} has no rows; make it anew by recipes.measure_students.")
    (setting, _), *others = settings.items()
    if others:
        other, number = others[0]
        raise InputError(
            f"{path} must have rows of one device and one kind of files, but line {number} is of "
            f"{other}, and those before it of {setting}; give a table for each."
        )
    return CostTable(setting, rows)


def _parsed(kind, line):
    """Return a dataclass of the columns of its fields."""
    return kind(**{x.name: x.type(line[x.name]) for x in dataclasses.fields(kind)})


NAMES = [x.name for kind in (Setting, Measured) for x in dataclasses.fields(kind)]


def _sizes(rows):
    return np.array([row.sizes for row in rows], "float64")


def _predict(rows, student):
    """Return the `Costs` of a `SubStudent`, or of another row, by the rows that were measured."""
    costs = {}
    for name, features in (("latency_ms", _time_features), ("size_mb", _size_features)):
        measured = np.array([getattr(row, name) for row in rows])
        x = features(_sizes(rows))
        scale = x.max(axis=0)
        # Each row counts by its relative error.
        weights, _ = scipy.optimize.nnls(x / scale / measured[:, None], np.ones(len(rows)))
        costs[name] = float((features(_sizes([student])) / scale @ weights)[0])
    return Costs(**costs)


def _time_features(sizes):
    layers, heads, units, _ = sizes.T
    return np.stack([np.ones_like(layers), layers, layers * heads, layers * units], axis=1)


def _size_features(sizes):
    return np.concatenate([_time_features(sizes), sizes[:, 3:]], axis=1)
