"""Files read with clear errors, and written whole or not at all."""

import contextlib
import json
import math
import os
import pathlib
import uuid

from tfnlp.errors import InputError


def read_json(path):
    """The object in a JSON file.

    Raises:
        InputError: if the file is missing, is not UTF-8, or is not a JSON object.
    """
    path = pathlib.Path(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{path} is missing; a checkpoint folder must hold it.") from None
    except UnicodeDecodeError as e:
        raise InputError(f"{path} is not UTF-8 text (byte {e.start}); save it as UTF-8.") from None
    except json.JSONDecodeError as e:
        raise InputError(
            f"{path}, line {e.lineno}: not valid JSON ({e.msg}); copy the file again."
        ) from None
    if not isinstance(value, dict):
        raise InputError(f"{path} must hold a JSON object, not a {type(value).__name__}.")
    return value


@contextlib.contextmanager
def replaced_when_whole(path):
    """Gives a temporary path beside `path`, moved over it only once it is written whole.

    A full disk or a kill leaves what was there before untouched.

    Raises:
        InputError: if the file cannot be written, saying which and why.
    """
    path = pathlib.Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        name = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}"
        # Made with these rights the file gets the usual ones; `tempfile` makes private ones, and
        # the mask that would widen them is one for all threads.
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        temporary = str(name)
        yield temporary
        os.replace(temporary, path)
        temporary = None
    except OSError as e:
        raise InputError(
            f"{path} could not be written ({e.strerror or e}); free space or choose another "
            "folder. Files written before are untouched."
        ) from e
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def write_text(path, text):
    """Writes UTF-8 text, whole or not at all."""
    with replaced_when_whole(path) as temporary:
        pathlib.Path(temporary).write_text(text, encoding="utf-8", newline="\n")


def json_text(value, **options):
    """A value as JSON, `null` for the floats that JSON cannot say (NaN and infinities).

    Args:
        value: of dicts with strings for keys, lists, tuples and scalars.
        options: as `json.dumps` takes them.
    """
    return json.dumps(_sayable(value), ensure_ascii=False, allow_nan=False, **options)


def _sayable(value):
    if isinstance(value, dict):
        return {key: _sayable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path, value):
    """Writes a JSON object, whole or not at all."""
    write_text(path, as_json(value))


def as_json(value):
    """A JSON object as the text of a file."""
    return json_text(value, indent=2) + "\n"


def make_folder(path):
    """Makes a folder, and those above it, where they are not there.

    Raises:
        InputError: if it cannot be made, saying why.
    """
    try:
        pathlib.Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(
            f"{path} could not be made ({e.strerror or e}); choose another folder."
        ) from e


def check_writable(path):
    """Raises an `InputError` if a file could not be written; for use before long work.

    Args:
        path: of the file, which need not exist, nor its folder; nothing is made.
    """
    path = pathlib.Path(path).absolute()
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it.")
    there = next(folder for folder in path.parents if folder.exists())
    if not there.is_dir():
        raise InputError(f"{path} cannot be written: {there} is a file; choose another folder.")
    if not os.access(there, os.W_OK):
        raise InputError(
            f"{path} cannot be written: {there} is closed to writing; choose another folder."
        )
