"""JSON and JSON Lines files: values, objects and nested fields."""

import json
import math
import re

from tfnlp.text.lines import read_lines
from tfnlp.utils.errors import ColumnError, InputError

# Lone UTF-16 surrogates, which JSON can name ("\ud800") and UTF-8 cannot hold.
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_json_data(path):
    """Load a JSON file, plain or gzipped.

    JSON can hold a lone UTF-16 surrogate, for example if a text was cut inside an emoji, which
    cannot be written as UTF-8. Each becomes U+FFFD, so offsets stay valid.

    Raises:
        InputError: as in `read_lines`, and if the file is not JSON.
    """
    return _parse(path, 1, "\n".join(line for _, line in read_lines(path)))


def read_objects(path, lines, on_read=None):
    """Yield (place, object) of a file of JSON objects, with the place for error messages.

    Args:
        path: the file.
        lines: whether each line is an object (JSON Lines); else the file is a list of objects, or
            an object with that list as its `data`.
        on_read: the progress callback of `read_lines`, for JSON Lines.

    Raises:
        InputError: as in `read_json_data`, and if a value is not an object.
    """
    if lines:
        values = (
            (f"line {number}", _parse(path, number, line))
            for number, line in read_lines(path, on_read)
            if line.strip()
        )
    else:
        data = read_json_data(path)
        data = data.get("data") if isinstance(data, dict) else data
        if not isinstance(data, list):
            raise InputError(
                f"{path} must hold a list of JSON objects, or one as its 'data'; if it holds an "
                "object a line, end its name in .jsonl."
            )
        values = ((f"example {number}", value) for number, value in enumerate(data, start=1))
    for place, value in values:
        if not isinstance(value, dict):
            raise InputError(f"{path}, {place}: must be a JSON object.")
        yield place, value


def field_text(path, place, value, column):
    """Return a field of an object as a string; the field is a text or a number.

    Args:
        path: the file, for errors.
        place: the position of the object in the file, for errors.
        value: the object.
        column: the field name, or the path of a nested field with dots between the names
            ("labels.real-label").
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
    """Parse a JSON text that starts at the line `first_line` of a file."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as e:
        line, message = first_line + e.lineno - 1, e.msg
        if message == "Extra data" and line > first_line:
            message += "; if each line is an object, end the name in .jsonl"
    except (
        ValueError,
        RecursionError,
    ) as e:  # duplicate field, too long number or too deep nesting
        line, message = first_line, e
    raise InputError(f"{path}, line {line}: not valid JSON ({message}).")


def _object(pairs):
    fields = {}
    for name, value in pairs:
        if name in fields:
            raise ValueError(f"the field {name!r} stands there twice")
        fields[name] = _SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value
    return fields
