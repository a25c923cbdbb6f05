"""Files that one process holds at a time; apart from `files.py`, which runs on Windows too."""

import contextlib
import fcntl
import os

from tfnlp.errors import InputError


@contextlib.contextmanager
def held_alone(descriptor, refusal):
    """Within, no other process holds an open file or folder, which is closed in the end.

    Args:
        descriptor: of the open file, as `os.open` gives it.
        refusal: the sentence where another process holds it.

    Raises:
        InputError: of that sentence.
    """
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(refusal) from None
        yield descriptor
    finally:
        os.close(descriptor)
