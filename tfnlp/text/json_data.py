"""JSON and JSON Lines files: whole values, objects, and fields by their paths."""

import json
import math
import re

from tfnlp.errors import ColumnError, InputError
from tfnlp.text.lines import read_lines

# Halves of a pair of UTF-16, which JSON can name alone ("\ud800") and UTF-8 cannot.
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_json_data(path):
    """The value in a JSON file, gzipped or not.

    JSON can name half of a pair of UTF-16 alone, as where a text was cut inside an emoji, of
    which no file can be written: each becomes U+FFFD, so that all places stay where they are.

    Raises:
        InputError: as `read_lines`, and if it is not JSON.
    """
    return _parse(path, 1, "\n".join(line for _, line in read_lines(path)))


def read_objects(path, lines, on_read=None):
    """Yields (place, object) of a file of JSON objects, the place as errors call it.

    Args:
        path: the file.
        lines: whether each line is an object (JSON Lines); else the file is a list of them, or
            an object with that list as its `data`.
        on_read: as `read_lines` takes it, of JSON Lines.

    Raises:
        InputError: as `read_json_data`, and if there is another value where an object is due.
    """
    if lines:
        values = (
            (f"line {number}", _parse(path, number, line))
            for number, line in read_lines(path, on_read)
            if line.strip()
        )
    else:
        whole = read_json_data(path)
        whole = whole.get("data") if isinstance(whole, dict) else whole
        if not isinstance(whole, list):
            raise InputError(
                f"{path} must hold a list of JSON objects, or one as its 'data'; if it holds an "
                "object a line, end its name in .jsonl."
            )
        values = ((f"example {number}", value) for number, value in enumerate(whole, start=1))
    for place, value in values:
        if not isinstance(value, dict):
            raise InputError(f"{path}, {place}: must be a JSON object.")
        yield place, value


def field_text(path, place, value, column):
    """The text, or number, that an object has in a column.

    Args:
        path: of the file, for errors.
        place: of the object in it, likewise.
        value: the object.
        column: the name of its field; or, of a field of its fields, the names from the outside
            in, with dots between ("labels.real-label").
    """
    field = value
    names = [column] if column in value else column.split(".")
    for depth, name in enumerate(names):
        if not isinstance(field, dict) or name not in field:
            owner = ".".join(names[:depth]) or "it"
            has = ", ".join(field) if field and isinstance(field, dict) else "no fields"
            raise ColumnError(f"{path}, {place}: no field {column!r}; {owner} has {has}.", column)
        field = field[name]
    infinite = isinstance(field, float) and not math.isfinite(field)
    if infinite or not isinstance(field, (str, int, float)):
        raise InputError(f"{path}, {place}: field {column!r} must be a text or a number.")
    return str(field)


def _parse(path, first_line, text):
    """The value of a JSON text that begins in a line of a file."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as e:
        line, message = first_line + e.lineno - 1, e.msg
        if message == "Extra data" and line > first_line:
            message += "; if each line is an object, end the name in .jsonl"
    except (ValueError, RecursionError) as e:  # a field twice, endless digits or brackets
        line, message = first_line, e
    raise InputError(f"{path}, line {line}: not valid JSON ({message}).")


def _object(pairs):
    found = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the field {name!r} stands there twice")
        found[name] = _SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value
    return found
