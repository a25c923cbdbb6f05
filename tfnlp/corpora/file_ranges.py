"""Ranges of bytes of large files, each read as a small file of its own."""

import contextlib
import pathlib
import tempfile
from typing import NamedTuple

from tfnlp.utils.errors import InputError

# Endings of tables whose lines are rows. A row of .csv may have line ends in quotes; compressed
# files and the other tables are read from their beginning.
ROWS = (".tsv", ".jsonl")
WHOLE = (".csv", ".json", ".parquet", ".arrow", ".gz")


class FileRange(NamedTuple):
    """A file from the first document at or after `begin` to the first at or after `end`.

    `unit` is what separates documents: "lines", "blank_lines" or "files". Where `end` is None, the
    range has the rest of the file.
    """

    path: pathlib.Path
    unit: str
    begin: int = 0
    end: int | None = None


def plan_ranges(files, shard_mb, unit):
    """Divide files into shards by their sizes alone.

    Args:
        files: a list of (path, bytes).
        shard_mb: the megabytes of a shard. Files that cannot be cut may exceed it: those with .gz,
            .csv, .json, .parquet and .arrow, and all where `unit` is "files".
        unit: of plain texts, as in `FileRange`. Rows of tables are lines.

    Returns:
        A list with a list of `FileRange`s for each shard, in the order of the files.
    """
    size = max(round(shard_mb * 1e6), 1)
    shards, room = [[]], size
    for path, length in files:
        unit_here, begin = "lines" if path.suffix.lower() in ROWS else unit, 0
        while unit_here != "files" and path.suffix.lower() not in WHOLE and length - begin > room:
            shards[-1].append(FileRange(path, unit_here, begin, begin + room))
            begin, room = begin + room, size
            shards.append([])
        shards[-1].append(FileRange(path, unit_here, begin))
        room -= length - begin
        if room <= 0:
            shards.append([])
            room = size
    return [shard for shard in shards if shard]


@contextlib.contextmanager
def as_file(part):
    """Yield the path of a file that holds a range alone, with its table's header; None if empty.

    It is the file itself where the range is all of it, else a temporary one.

    Raises:
        InputError: of the body, with the place of the range in the file in place of the temporary
            file.
    """
    path, unit, begin, end = part
    if not begin and end is None:
        yield path
        return
    suffix = path.suffix.lower()
    with open(path, "rb") as file:
        header = _header(file) if suffix == ".tsv" else b""
        is_all = bool(header) and not file.read(1)
        begin = max(_first(file, begin, unit), file.seek(len(header)))
        end = None if end is None else max(_first(file, end, unit), begin)
        file.seek(begin)
        content = file.read(-1 if end is None else end - begin)
    if is_all and not part.begin:  # whoever reads it says what is missing
        yield path
        return
    # Where a line is a text, an empty line is an empty text.
    texts = unit == "lines" and suffix != ".jsonl" and b"\t" not in header
    if not (content if texts else content.strip()):
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / path.name
        copy.write_bytes(header + content)
        try:
            yield copy
        except InputError as e:
            place = f"{path}, from byte {begin}"
            raise InputError(str(e).replace(str(copy), place)) from None


def _first(file, position, unit):
    """Return where the first document at or after a position of an open file begins."""
    if not position:
        return 0
    file.seek(position - 1)
    line = file.readline()  # up to its end, which is the character before where a line begins
    while line and unit == "blank_lines":
        line = file.readline()
        if not line.decode(errors="replace").strip():
            break
    return file.tell()


def _header(file):
    """Return the lines of an open file up to the first that is not empty."""
    lines = [file.readline()]
    while lines[-1] and not lines[-1].strip(b"\r\n"):
        lines.append(file.readline())
    return b"".join(lines)
