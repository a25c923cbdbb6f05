"""Base class of the layers that take token ids."""

import keras
from keras import ops

from tfnlp.layers.core.base_layer import EMBEDDINGS_OPTIONS, BaseLayer


class TokenLayer(BaseLayer):
    """Base class of layers that take ids, as integers or, like Keras' `Embedding`, as floats.

    Args:
        embeddings_regularizer, embeddings_constraint: for the tables.
    """

    OPTIONS = EMBEDDINGS_OPTIONS

    @property
    def input_dtype(self):
        # Not the half precision that a layer may compute in: it has no 2049.
        return keras.backend.result_type(self.compute_dtype, "float32")


def as_ids(x):
    """Cast floats, such as those of a `keras.Input`, to int32; leave integers unchanged."""
    return x if "int" in keras.backend.standardize_dtype(x.dtype) else ops.cast(x, "int32")
