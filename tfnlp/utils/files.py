"""Reading of files with clear errors, and atomic writing."""

import contextlib
import hashlib
import json
import math
import os
import pathlib
import tempfile
import uuid

from tfnlp.utils.errors import InputError


def read_json(path):
    """Return the object in a JSON file.

    Raises:
        InputError: if the file is missing, is not UTF-8, or is not a JSON object.
    """
    path = pathlib.Path(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        exported = "".join(f", or give {file} itself" for file in path.parent.glob("*.tflite"))
        raise InputError(
            f"{path} is missing; a checkpoint folder must hold it{exported}."
        ) from None
    except (ValueError, RecursionError) as e:  # JSON's and Unicode's, or too deep nesting
        place = f"{path}, line {e.lineno}" if isinstance(e, json.JSONDecodeError) else path
        raise InputError(f"{place}: not valid JSON in UTF-8 ({e}); copy the file again.") from None
    if not isinstance(value, dict):
        raise InputError(f"{path} must hold a JSON object, not a {type(value).__name__}.")
    return value


@contextlib.contextmanager
def atomic_replace(path):
    """Yield a temporary path beside `path`, and move it over `path` once it is fully written.

    After a full disk or a kill the previous file is untouched.

    Raises:
        InputError: if the file cannot be written; it names the file and the reason.
    """
    path = pathlib.Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        name = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}"
        # With 0o666 the file gets the usual permissions. `tempfile` makes private files, and the
        # umask that would widen them is shared by all threads.
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        temporary, mode = str(name), name.stat().st_mode
        yield temporary
        os.chmod(temporary, mode)  # safetensors puts a private file in its place
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
    """Write UTF-8 text atomically."""
    with atomic_replace(path) as temporary:
        pathlib.Path(temporary).write_text(text, encoding="utf-8", newline="\n")


def json_text(value, **options):
    """Return a value as JSON, with `null` for floats that JSON lacks (NaN and infinities).

    Args:
        value: dicts with string keys, lists, tuples and scalars.
        options: keyword arguments of `json.dumps`.
    """
    return json.dumps(_finite_or_none(value), ensure_ascii=False, allow_nan=False, **options)


def _finite_or_none(value):
    if isinstance(value, dict):
        return {key: _finite_or_none(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite_or_none(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path, value):
    """Write a JSON object atomically."""
    write_text(path, as_json(value))


def write_json_lines(path, rows):
    """Write a JSON object on each line, atomically; values that JSON lacks as text."""
    write_text(path, "".join(json_text(row, default=str) + "\n" for row in rows))


def as_json(value):
    """Return a JSON object as the text of a file."""
    return json_text(value, indent=2) + "\n"


def file_hash(path):
    """Return the SHA-256 of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_folder(path):
    """Create a folder and its missing parents, or raise an InputError with the reason."""
    try:
        pathlib.Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(
            f"{path} could not be created ({e.strerror or e}); choose another folder."
        ) from e


def check_writable(path):
    """Raise an InputError before long work if a file could not be written.

    Neither the file nor its folder needs to exist; what is there stays as it is.
    """
    path = pathlib.Path(path).absolute()
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it.")
    check_folder(path.parent)


def check_folder(path):
    """Raise an InputError before long work if no file could be written into a folder.

    It does not need to exist, and is not created.
    """
    path = pathlib.Path(path).absolute()
    folder = next(folder for folder in (path, *path.parents) if folder.exists())
    try:
        # The system's rights alone do not tell, for root or on a mounted disk.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as e:
        reason = f"takes no files ({e.strerror or e})" if folder.is_dir() else "is a file"
        raise InputError(
            f"{path} cannot be written: {folder} {reason}; choose another folder."
        ) from None


def check_absent(*paths, advice="give another folder"):
    """Raise an InputError for a file that is there, which would be lost."""
    for path in paths:
        if path.exists():
            raise InputError(f"{path} is there; {advice}.")
