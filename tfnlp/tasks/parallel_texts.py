"""Parallel texts from a table, or from two files line by line."""

import dataclasses
import itertools

from tfnlp.text.reading.readers import read_columns, read_lines
from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class ParallelTexts:
    """Texts with their translations.

    Args:
        sources, targets: lists of as many strings.
        places: the position of each pair in its file, a list of strings for error messages; None
            without files.
    """

    sources: list
    targets: list
    places: list | None = None

    def __len__(self):
        return len(self.sources)

    def place(self, number):
        """Return the name of a pair in error messages."""
        return self.places[number] if self.places else f"pairs[{number}]"


def read_parallel_texts(paths, source_column="source", target_column="target"):
    """Read texts with their translations.

    Args:
        paths: a .tsv, .csv, .json, .jsonl or .parquet file with a column for each side; or two
            files with the same number of lines, where a line of the second translates that line of
            the first. Each may end in .gz.
        source_column, target_column: the columns of a table; unused for two files.

    Raises:
        InputError: for more than two files, files of different numbers of lines, or an empty side,
            with its file and line; and as in `read_columns` and `read_lines`.
    """
    paths = [paths] if isinstance(paths, str) or not hasattr(paths, "__iter__") else [*paths]
    if len(paths) == 1:
        table = read_columns(paths[0], [source_column, target_column])
        names = f"{source_column!r}", f"{target_column!r}"
        rows = [
            (f"{paths[0]}, {place}", row[source_column], row[target_column])
            for place, row in table
        ]
    elif len(paths) == 2:
        names = "the source", "the target"
        rows = [(f"{paths[0]}, line {i}", *sides) for i, *sides in _side_by_side(*paths)]
    else:
        raise InputError(
            f"Texts with their translations are in one table or in two files, not in {len(paths)} "
            f"({', '.join(map(str, paths))})."
        )
    for place, *sides in rows:
        for name, text in zip(names, sides, strict=True):
            if not text.strip():
                raise InputError(f"{place}: {name} is empty; give both texts, or leave both out.")
    places, sources, targets = map(list, zip(*rows, strict=True))
    return ParallelTexts(sources, targets, places)


def _side_by_side(source_path, target_path):
    """Yield (line number, source, target) of two files with equally many lines."""
    counts = [0, 0]
    for rows in itertools.zip_longest(read_lines(source_path), read_lines(target_path)):
        for side, row in enumerate(rows):
            counts[side] += row is not None
        if None not in rows:
            (number, source), (_, target) = rows
            yield number, source, target
    if counts[0] != counts[1]:
        raise InputError(
            f"{source_path} has {counts[0]} lines and {target_path} {counts[1]}; each line of the "
            "one must have its translation in the same line of the other."
        )
