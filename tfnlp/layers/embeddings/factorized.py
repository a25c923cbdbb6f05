"""Token embeddings as a product of two small matrices."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.products import times_table
from tfnlp.layers.core.weight_options import EmbeddingsOptions, WeightOptions
from tfnlp.layers.embeddings.token_layer import TokenLayer, as_ids


class FactorizedOptions(EmbeddingsOptions, WeightOptions, total=False):
    """Options of a `FactorizedEmbedding`: of its table and projection."""


@keras.saving.register_keras_serializable("tfnlp")
class FactorizedEmbedding(TokenLayer):
    """A (V, E) table followed by an (E, D) projection, E much smaller than D.

    Lan et al. 2020, 'ALBERT', section 3.1: V x D parameters become V x E + E x D. The same
    weights serve as the output over the vocabulary: the table transposed, after the projection
    transposed where the states are D wide (Press & Wolf 2017).

    Args: those of `TokenLayer`, and
        embedding_dim: E, the width of the table.
        use_bias: whether the projection adds a bias.
        use_output_bias: whether the tied output adds a bias (V,), as ALBERT's does.
        kernel_initializer, kernel_regularizer, kernel_constraint: for the projection.
        bias_initializer, bias_regularizer, bias_constraint: for both biases.

    Call arguments:
        token_ids: (B, L) integers below V; with `reverse`, states (..., E) or (..., D).
        reverse: whether to go from states to logits.

    Returns:
        (B, L, D); with `reverse` (..., V).
    """

    def __init__(
        self,
        vocabulary_size,
        embedding_dim,
        hidden_dim,
        *,
        use_bias=True,
        use_output_bias=False,
        pad_token_id=None,
        **kwargs: Unpack[FactorizedOptions],
    ):
        super().__init__(vocabulary_size, hidden_dim, pad_token_id=pad_token_id, **kwargs)
        self.embedding_dim = embedding_dim
        self.use_bias = use_bias
        self.use_output_bias = use_output_bias
        self.projection = self._dense(hidden_dim, "projection", use_bias=use_bias)

    def build(self, token_ids_shape):
        self.token_table = self._table("token_table", self.vocabulary_size, self.embedding_dim)
        self.projection.build((None, None, self.embedding_dim))
        self.output_bias = None
        if self.use_output_bias:
            self.output_bias = self._weight(
                "bias", "output_bias", (self.vocabulary_size,), self.bias_initializer
            )

    def call(self, token_ids, reverse=False):
        if not reverse:
            x = self.lookup(self.token_table, as_ids(token_ids))  # (B, L, E)
            return self._masked(self.projection(x), token_ids)  # (B, L, D)
        x = ops.cast(token_ids, self.compute_dtype)
        if x.shape[-1] != self.embedding_dim:
            x = times_table(x, ops.transpose(self.projection.float_kernel()))  # (..., E)
        logits = times_table(x, ops.transpose(self.token_table))  # (..., V)
        return logits if self.output_bias is None else logits + self.output_bias
