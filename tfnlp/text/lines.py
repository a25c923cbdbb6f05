"""Lines of UTF-8 text files, plain or gzipped."""

import gzip
import logging
import pathlib
import re
import zlib

from tfnlp.utils.errors import InputError

# The number of lines between two calls of `on_read`.
LINES_BETWEEN = 1000
# A Hangul syllable written as single letters (Unicode NFD). With an old final letter it has no
# composed form in KS X 1026-1.
DECOMPOSED = re.compile("[\u1100-\u1112][\u1161-\u1175](?![\u11c3-\u11ff\ud7cb-\ud7fb])")
# The errors of a broken gzip file.
_BROKEN = (gzip.BadGzipFile, EOFError, zlib.error)


def check_file(path):
    """Raise an InputError if the file is missing or a folder."""
    if not path.exists():
        raise InputError(f"{path} does not exist; check the path.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give a file in it.")


def holds_nothing(path):
    """Return whether a file is empty, after decompression if it is gzipped."""
    path = pathlib.Path(path)
    if path.stat().st_size == 0 or not path.name.lower().endswith(".gz"):
        return path.stat().st_size == 0
    try:
        with gzip.open(path) as file:
            return not file.read(1)
    except _BROKEN:
        return False  # reading the file raises the error


def read_lines(path, on_read=None):
    """Yield (number, text) of each line, without the line end.

    The first line with decomposed Hangul is logged as a warning: it looks like composed Hangul but
    has other tokens.

    Args:
        path: the file, gzipped if its name ends in .gz.
        on_read: a callback that is called every `LINES_BETWEEN` lines with the number of bytes
            read so far.

    Raises:
        InputError: if the file is missing, empty, not UTF-8 or not a whole gzip file, or a line
            has a NUL byte or a CR before its end.
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
                    # Not absl's logger, which the mobile runtime lacks.
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
    """Yield (number, text) of each line of an open binary file, as in `read_lines`.

    Args:
        file: an iterable of lines of bytes.
        name: the name of the file in error messages.

    Raises:
        InputError: if a line is not UTF-8, or has a NUL byte or a CR before its end.
    """
    for number, line in enumerate(file, start=1):
        yield number, _decoded(line, f"{name}, line {number}")


def _decoded(line, place):
    """Decode a line of bytes, without its line end.

    A byte order mark at the start is dropped on any line, since concatenated files have several.
    Before a tab it is kept, as a character with a tag.
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
