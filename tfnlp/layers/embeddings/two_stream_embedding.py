"""The token embedding of XLNet, and the vector that its query stream starts from."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.products import times_table
from tfnlp.layers.core.weight_options import EmbeddingsOptions
from tfnlp.layers.embeddings.token_layer import TokenLayer, as_ids


@keras.saving.register_keras_serializable("tfnlp")
class TwoStreamEmbedding(TokenLayer):
    """Embeddings of XLNet's content and query streams.

    Yang et al. 2019, 'XLNet', section 2.3: h starts as the token's embedding, g as one
    learned vector w at every position.

    Args: those of `TokenLayer`, for the token table and the vector, and
        dropout: applied to both in training.

    Call arguments:
        token_ids: (B, L) integers below V; with `reverse` states (..., D).
        target_mapping: (B, P, L), one-hot rows: the position that each prediction is of.
            Where the layer is built without it, w is kept but not trained.
        reverse: multiply states with the token table, as a tied output does.

    Returns:
        h, (B, L, D); with `target_mapping` a pair of h and g, (B, P, D); with `reverse`
        (..., V). Only h has the mask of padding.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        *,
        dropout=0.0,
        pad_token_id=None,
        **kwargs: Unpack[EmbeddingsOptions],
    ):
        super().__init__(vocabulary_size, hidden_dim, pad_token_id=pad_token_id, **kwargs)
        self.dropout = dropout
        self.dropout_layer = self._dropout_layer(dropout)

    @property
    def embedding_dim(self):
        """Width of the table."""
        return self.hidden_dim

    def build(self, token_ids_shape, target_mapping_shape=None):
        self.token_table = self._table("token_table", self.vocabulary_size, self.hidden_dim)
        is_used = target_mapping_shape is not None
        self.query_vector = self._table("query_vector", 1, 1, self.hidden_dim, trainable=is_used)

    def call(self, token_ids, target_mapping=None, reverse=False, training=None):
        if reverse:
            states = ops.cast(token_ids, self.compute_dtype)
            return times_table(states, ops.transpose(self.token_table))  # (..., V)
        h = ops.cast(self.lookup(self.token_table, as_ids(token_ids)), self.compute_dtype)
        h = self.dropout_layer(h, training=training)  # (B, L, D)
        h = self._masked(h, token_ids)
        if target_mapping is None:
            return h
        batch, predictions, _ = ops.shape(target_mapping)
        g = ops.broadcast_to(self.query_vector, (batch, predictions, self.hidden_dim))
        return h, self.dropout_layer(g, training=training)  # (B, P, D)

    def compute_output_spec(self, token_ids, target_mapping=None, reverse=False, **kwargs):
        h = super().compute_output_spec(token_ids, reverse=reverse)
        if target_mapping is None:
            return h
        return h, self._specs((*target_mapping.shape[:2], self.hidden_dim))
