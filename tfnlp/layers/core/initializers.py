"""Truncated normal initialisation without rejection."""

import contextlib
import math

import keras
from keras import ops

# Truncation limit in standard deviations, and the probability mass within.
LIMIT = 2.0
INSIDE = math.erf(LIMIT / math.sqrt(2))

# Replacement for fresh weights, (shape, dtype) -> tensor, while a checkpoint will be loaded.
_instead = None


@contextlib.contextmanager
def no_fresh_weights(instead):
    """Temporarily make `FastTruncatedNormal` return `instead(shape, dtype)`.

    This is for weights that a checkpoint replaces: drawing them would waste time and memory.
    """
    global _instead  # noqa: PLW0603
    before, _instead = _instead, instead
    try:
        yield
    finally:
        _instead = before


@keras.saving.register_keras_serializable("tfnlp")
class FastTruncatedNormal(keras.initializers.TruncatedNormal):
    """Truncated normal initializer by the inverse of its cumulative function.

    The distribution is that of `keras.initializers.TruncatedNormal`, cut at two standard
    deviations, without redrawing.
    """

    def __call__(self, shape, dtype=None):
        if _instead is not None:
            return _instead(shape, dtype or keras.config.floatx())
        uniform = keras.random.uniform(shape, -INSIDE, INSIDE, dtype="float32", seed=self.seed)
        normal = ops.erfinv(uniform) * (math.sqrt(2) * self.stddev)
        normal = normal + self.mean if self.mean else normal
        return ops.cast(normal, dtype or keras.config.floatx())
