"""Progress bars that are lively in a terminal and sparing in a log file."""

import sys

from tqdm import tqdm


def progress_bar(*args, **kwargs):
    """A `tqdm` bar; where standard error is no terminal, a line every 20 seconds at most."""
    return tqdm(*args, **bar_settings(), **kwargs)


def bar_settings():
    """What `tqdm` is given for such a bar."""
    live = sys.stderr.isatty()
    return {
        "dynamic_ncols": True,
        "mininterval": 0.1 if live else 20,
        "miniters": None if live else 1,
    }
