"""Progress bars: frequent updates in a terminal, few lines in a log file."""

import sys

from tqdm import tqdm


def progress_bar(*args, **kwargs):
    """Return a `tqdm` bar; without a terminal it writes a line every 20 seconds at most."""
    return tqdm(*args, **bar_settings(), **kwargs)


def bar_settings():
    """Return the `tqdm` settings of `progress_bar`."""
    live = sys.stderr.isatty()
    return {
        "dynamic_ncols": True,
        "mininterval": 0.1 if live else 20,
        "miniters": None if live else 1,
    }
