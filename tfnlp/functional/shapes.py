"""Shapes with one unknown size."""

from keras import ops


def is_open(sizes):
    """Return whether exactly one size of a shape is unknown."""
    return sum(not isinstance(size, int) for size in sizes) == 1


def reshape(x, sizes):
    """Reshape to sizes of `ops.shape`; a single unknown size is inferred.

    TFLite then has a constant shape and need not compute one at each call.
    """
    if is_open(sizes):
        sizes = [size if isinstance(size, int) else -1 for size in sizes]
    return ops.reshape(x, sizes)
