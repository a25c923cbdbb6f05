"""Progress bars that are lively in a terminal and sparing in a log file."""

import sys

from tqdm import tqdm


def progress_bar(*args, **kwargs):
    """A `tqdm` bar; where standard error is no terminal, a line every 20 seconds at most."""
    live = sys.stderr.isatty()
    return tqdm(
        *args,
        dynamic_ncols=True,
        mininterval=0.1 if live else 20,
        miniters=None if live else 1,
        **kwargs,
    )
