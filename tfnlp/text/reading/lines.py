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
    if path.is_dir() or not path.exists():
        problem = "is a folder; give a file in it"
        if not path.exists():
            problem = "does not exist; check the path"
        raise InputError(f"{path} {problem}.")


def holds_nothing(path):
    """Return whether a file is empty, after decompression if it is gzipped."""
    try:
        with (gzip.open if _is_gzipped(path) else open)(path, "rb") as file:
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
        InputError: as in `decoded_lines`, and if the file is missing, empty or not a whole gzip
            file.
    """
    path = pathlib.Path(path)
    check_file(path)
    number, composed = 0, True
    try:
        with open(path, "rb") as raw, gzip.open(raw) if _is_gzipped(path) else raw as file:
            for number, text in decoded_lines(file, path):
                if on_read and number % LINES_BETWEEN == 0:
                    on_read(raw.tell())
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
    """Yield (number, text) of each line of an open binary file, without the line end.

    A byte order mark at the start is dropped on any line, since concatenated files have several.
    Before a tab it is kept, as a character with a tag.

    Args:
        file: an iterable of lines of bytes.
        name: the name of the file in error messages.

    Raises:
        InputError: if a line is not UTF-8, or has a NUL byte or a CR before its end.
    """
    for number, line in enumerate(file, start=1):
        try:
            text = line.decode().rstrip("\r\n")
        except UnicodeDecodeError as e:
            raise InputError(
                f"{name}, line {number}: byte {e.start + 1} of the line is not UTF-8; save the "
                "file as UTF-8."
            ) from None
        if "\0" in text or "\r" in text:
            byte = "NUL byte" if "\0" in text else "CR"
            raise InputError(
                f"{name}, line {number}: there is a {byte} within the line; save the file as "
                "UTF-8, with LF or CRLF as line ends."
            )
        yield number, text if text.startswith("\ufeff\t") else text.removeprefix("\ufeff")


def _is_gzipped(path):
    return path.name.lower().endswith(".gz")
