"""Filter for notices of LiteRT, TensorFlow's import and its converter, which nothing silences."""

import contextlib
import os
import re
import sys
import tempfile
import threading

# LiteRT's log lines name their source files, except the delegate notice and second lines of
# others. Errors among them are raised as exceptions too.
NOTICE = re.compile(
    rb"(INFO|WARNING|ERROR): \[[\w/]+\.cc:\d+\]|INFO: Created TensorFlow Lite|\xe2\x94\x94 "
    rb"|I0000 \S+ +\d+ \w+\.cc:\d+\]|WARNING: All log messages before absl::InitializeLog"
    rb"|W0000 \S+ +\d+ tf_tfl_flatbuffer_helpers\.cc:\d+\] Ignored"
)
_LOCK = threading.Lock()


@contextlib.contextmanager
def without_notices(wait=True):
    """Drop notices from standard error; write all other lines at the end.

    Only one thread enters at a time, since standard error belongs to the process. The others
    wait, or go on at once without `wait`, as must what happens within the context.
    """
    # A process may be started without standard error.
    if sys.stderr is None or not _LOCK.acquire(blocking=wait):
        yield
        return
    with contextlib.ExitStack() as stack:
        stack.callback(_LOCK.release)
        captured = stack.enter_context(tempfile.TemporaryFile())
        sys.stderr.flush()
        stderr = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            captured.seek(0)
            with open(2, "wb", closefd=False) as file:
                file.writelines(line for line in captured if not NOTICE.match(line))
