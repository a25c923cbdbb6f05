"""Notices of LiteRT and SentencePiece on standard error, which no setting silences."""

import contextlib
import os
import re
import sys
import tempfile
import threading

# The logs of LiteRT and of SentencePiece name their source files; LiteRT's notice of its delegate,
# and the second lines of others, do not. Errors among them are raised too.
NOTICE = re.compile(
    rb"(INFO|WARNING|ERROR): \[[\w/]+\.cc:\d+\]|INFO: Created TensorFlow Lite|\xe2\x94\x94 "
    rb"|I0000 \S+ +\d+ \w+\.cc:\d+\]|WARNING: All log messages before absl::InitializeLog"
)
_LOCK = threading.Lock()


@contextlib.contextmanager
def without_notices():
    """Leave out notices; all other lines are written at the end.

    One thread at a time is within: standard error is the process' own.
    """
    if sys.stderr is None:  # of a process that was started without one
        yield
        return
    with _LOCK, tempfile.TemporaryFile() as written:
        sys.stderr.flush()
        stderr = os.dup(2)
        os.dup2(written.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            written.seek(0)
            with open(2, "wb", closefd=False) as file:
                file.writelines(line for line in written if not NOTICE.match(line))
