"""The token embedding of XLNet, and the vector that its query stream starts from."""

import keras
from keras import ops

from tfnlp.functional.masks import attach_padding_mask
from tfnlp.functional.products import times_table
from tfnlp.layers.embeddings.token_layer import TokenLayer, as_ids


@keras.saving.register_keras_serializable("tfnlp")
class TwoStreamEmbedding(TokenLayer):
    """Embeddings of XLNet's content and query streams.

    Yang et al. 2019, 'XLNet', section 2.3: h starts as the token's embedding, g as one
    learned vector w at every position.

    Args:
        vocabulary_size: V, the number of tokens.
        hidden_dim: D, the width.
        dropout: applied to both in training.
        embeddings_initializer, embeddings_regularizer, embeddings_constraint: for the token
            table and the vector.
        pad_token_id: the id of padding, which a Keras mask hides from later layers, like
            `mask_zero` of `keras.layers.Embedding`; None for no mask.
            Only h has the mask; g starts without one.

    Call arguments:
        token_ids: (B, L) integers below V; with `reverse` states (..., D).
        target_mapping: (B, P, L), one-hot rows: the position that each prediction is of.
            Where the layer is built without it, w is kept but not trained.
        reverse: multiply states with the token table, as a tied output does.

    Returns:
        h, (B, L, D); with `target_mapping` a pair of h and g, (B, P, D); with `reverse`
        (..., V).
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        dropout=0.0,
        embeddings_initializer="uniform",
        pad_token_id=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.keep(locals())
        self.dropout_layer = self._dropout_layer(dropout)

    @property
    def embedding_dim(self):
        """Width of the table."""
        return self.hidden_dim

    def build(self, token_ids_shape, target_mapping_shape=None):
        self.token_table = self._weight(
            "embeddings",
            "token_table",
            (self.vocabulary_size, self.hidden_dim),
            self.embeddings_initializer,
        )
        self.query_vector = self._weight(
            "embeddings",
            "query_vector",
            (1, 1, self.hidden_dim),
            self.embeddings_initializer,
            trainable=target_mapping_shape is not None,
        )

    def call(self, token_ids, target_mapping=None, reverse=False, training=None):
        if reverse:
            states = ops.cast(token_ids, self.compute_dtype)
            return times_table(states, ops.transpose(self.token_table))  # (..., V)
        h = ops.cast(self.lookup(self.token_table, as_ids(token_ids)), self.compute_dtype)
        h = self.dropout_layer(h, training=training)  # (B, L, D)
        h = attach_padding_mask(h, token_ids, self.pad_token_id)
        if target_mapping is None:
            return h
        batch, predictions, _ = ops.shape(target_mapping)
        g = ops.broadcast_to(self.query_vector, (batch, predictions, self.hidden_dim))
        return h, self.dropout_layer(g, training=training)  # (B, P, D)

    def compute_output_spec(self, token_ids, target_mapping=None, reverse=False, **kwargs):
        if reverse:
            return self._specs((*token_ids.shape[:-1], self.vocabulary_size))
        h = self._specs((*token_ids.shape, self.hidden_dim))
        h = attach_padding_mask(h, token_ids, self.pad_token_id)
        if target_mapping is None:
            return h
        return h, self._specs((*target_mapping.shape[:2], self.hidden_dim))
