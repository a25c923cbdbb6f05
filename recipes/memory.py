"""How a recipe's process holds on to memory."""

import contextlib
import ctypes

# glibc's numbers of two of its settings.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


def keep_freed_memory():
    """Has glibc keep what is freed for later use; does nothing where there is no glibc.

    By itself it takes blocks above 32 MB, such as the gradient of a token table, from the system
    at each step and gives them back, and the system clears all their pages each time.
    """
    # Other C libraries have no `mallopt`, and Windows no library without a name.
    with contextlib.suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
