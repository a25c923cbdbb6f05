"""Exclusive file locks, kept out of `files.py`, which also runs on Windows.

The lock belongs to the open file, so a child process that inherits the descriptor holds it on.
`filelock` releases it for the children too.
"""

import contextlib
import fcntl
import os

from absl import logging

from tfnlp.utils.errors import InputError


@contextlib.contextmanager
def held_alone(descriptor, refusal):
    """Hold an exclusive lock on an open file or folder, and close it at the end.

    Args:
        descriptor: of the open file, from `os.open`.
        refusal: the message of the InputError if another process holds it.
    """
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(refusal) from None
        except OSError as e:  # the file system has no locks
            logging.warning("There is no lock against a second run (%s): start none.", e)
        yield descriptor
    finally:
        os.close(descriptor)
