"""Lines of UTF-8 text files, plain or gzipped."""

import gzip
import logging
import pathlib
import re
import zlib

from tfnlp.errors import InputError

# Lines between two calls of `on_read`.
LINES_BETWEEN = 1000
# A syllable of Hangul that is written as its letters, as Unicode's NFD has it. With an old letter
# at its end it has no other form in KS X 1026-1.
DECOMPOSED = re.compile("[\u1100-\u1112][\u1161-\u1175](?![\u11c3-\u11ff\ud7cb-\ud7fb])")
# What a file raises that is not whole gzip.
_BROKEN = (gzip.BadGzipFile, EOFError, zlib.error)


def check_file(path):
    """Raises an InputError unless there is such a file."""
    if not path.exists():
        raise InputError(f"{path} does not exist; check the path.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give a file in it.")


def holds_nothing(path):
    """Whether a file is empty, or what is gzipped in it."""
    path = pathlib.Path(path)
    if path.stat().st_size == 0 or not path.name.lower().endswith(".gz"):
        return path.stat().st_size == 0
    try:
        with gzip.open(path) as file:
            return not file.read(1)
    except _BROKEN:
        return False  # which reading it says


def read_lines(path, on_read=None):
    """Yields (number, text) of each line, the line end removed.

    A line of the log names the first with decomposed Hangul, which looks alike and has other
    tokens.

    Args:
        path: the file; gzipped where its name ends in .gz.
        on_read: called now and then with how many bytes of the file are read.

    Raises:
        InputError: if the file is missing, empty, not UTF-8 or not a whole gzip file, or a line
            has a NUL byte or a CR that does not end it.
    """
    path = pathlib.Path(path)
    check_file(path)
    gzipped = path.name.lower().endswith(".gz")
    number, composed = 0, True
    try:
        with open(path, "rb") as raw, gzip.open(raw) if gzipped else raw as file:
            for number, line in enumerate(file, start=1):
                if on_read and number % LINES_BETWEEN == 0:
                    on_read(raw.tell())
                text = _decoded(line, f"{path}, line {number}")
                if composed and DECOMPOSED.search(text):
                    composed = False
                    # Not absl's, which the runtime for phones is without.
                    logging.getLogger(__name__).warning(
                        "%s, line %d: Hangul is written as single letters (NFD), which few "
                        "tokenizers join; save the file in NFC.",
                        path,
                        number,
                    )
                yield number, text
    except _BROKEN as e:
        after = f", after line {number}" if number else ""
        raise InputError(
            f"{path}{after}: not a whole gzip file ({e}); compress it again, or leave .gz out of "
            "its name if it is not compressed."
        ) from None
    if number == 0:
        raise InputError(f"{path} is empty; it needs at least one line of data.")


def decoded_lines(file, name):
    """Yields (number, text) of each line of a file that is open for bytes, as `read_lines`.

    Args:
        file: yields lines of bytes.
        name: what errors call it.

    Raises:
        InputError: for a line that is not UTF-8, or has a NUL byte or a CR that does not end it.
    """
    for number, line in enumerate(file, start=1):
        yield number, _decoded(line, f"{name}, line {number}")


def _decoded(line, place):
    """Decode a line's bytes, without its end.

    A byte order mark at its beginning is left out: files that are put together have more than
    one. Before a tab it is a character that has a tag.
    """
    try:
        text = line.decode().rstrip("\r\n")
    except UnicodeDecodeError as e:
        raise InputError(
            f"{place}: byte {e.start + 1} of the line is not UTF-8; save the file as UTF-8."
        ) from None
    if "\0" in text:
        raise InputError(f"{place}: there is a NUL byte; take it out, or save the file as UTF-8.")
    if "\r" in text:
        raise InputError(
            f"{place}: there is a CR within the line; save the file with LF or CRLF as line ends."
        )
    return text if text.startswith("\ufeff\t") else text.removeprefix("\ufeff")
