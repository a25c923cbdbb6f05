"""Sizes and shapes: checks, and shapes with one unknown size."""

import numbers

from keras import ops


def check_sizes(**sizes):
    """Raise a ValueError for a size that is neither None nor an integer of at least 1."""
    for name, size in sizes.items():
        if size is not None and (not isinstance(size, numbers.Integral) or size < 1):
            raise ValueError(f"{name}={size!r} must be at least 1, an integer.")


def reshape(x, sizes):
    """Reshape to sizes of `ops.shape`; a single unknown size is inferred.

    TFLite then has a constant shape and need not compute one at each call.
    """
    if sum(not isinstance(size, int) for size in sizes) == 1:
        sizes = [size if isinstance(size, int) else -1 for size in sizes]
    return ops.reshape(x, sizes)
