"""Base class of the token embeddings."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.masks import padding_mask, set_mask
from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.weight_options import EmbeddingsOptions


class TokenLayer(BaseLayer):
    """Base class of token embeddings: of ids as integers or, like Keras' `Embedding`, as floats.

    Args:
        vocabulary_size: V, the number of tokens.
        hidden_dim: D, the width of the output.
        pad_token_id: the id of padding, which a Keras mask hides from later layers, like
            `mask_zero` of `keras.layers.Embedding`; None for no mask.
        embeddings_initializer, embeddings_regularizer, embeddings_constraint: for the tables.

    Raises:
        ValueError: for `mask_zero`.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        *,
        pad_token_id=None,
        **kwargs: Unpack[EmbeddingsOptions],
    ):
        if "mask_zero" in kwargs:
            raise ValueError(
                f"mask_zero={kwargs['mask_zero']}: give the id of padding as pad_token_id, such "
                "as pad_token_id=0; without it there is no mask."
            )
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.pad_token_id = pad_token_id

    @property
    def input_dtype(self):
        # Not the half precision that a layer may compute in: it has no 2049.
        return keras.backend.result_type(self.compute_dtype, "float32")

    def _table(self, name, *shape, **kwargs):
        return self._weight("embeddings", name, shape, self.embeddings_initializer, **kwargs)

    def _masked(self, x, token_ids):
        """Attach the padding mask of the ids to `x`, as `mask_zero` does, if there is a pad id."""
        if self.pad_token_id is None:
            return x
        return set_mask(x, padding_mask(token_ids, self.pad_token_id))

    def compute_output_spec(self, token_ids, *further, reverse=False, **kwargs):
        if reverse:
            return self._specs((*token_ids.shape[:-1], self.vocabulary_size))
        return self._masked(self._specs((*token_ids.shape, self.hidden_dim)), token_ids)


def as_ids(x):
    """Cast floats, such as those of a `keras.Input`, to int32; leave integers unchanged."""
    return x if "int" in keras.backend.standardize_dtype(x.dtype) else ops.cast(x, "int32")
