"""Memory settings of a recipe's process."""

import contextlib
import ctypes

# glibc's `mallopt` constants.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


def keep_freed_memory():
    """Make glibc keep freed memory for later use; do nothing without glibc.

    By default glibc maps blocks above 32 MB, such as the gradient of a token table, at each step
    and unmaps them again. The system then clears all their pages each time.
    """
    # Other C libraries lack `mallopt`, and `CDLL(None)` fails on Windows.
    with contextlib.suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
