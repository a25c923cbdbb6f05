"""Token embeddings as a product of two small matrices."""

import keras
from keras import ops

from tfnlp.functional.masks import attach_padding_mask
from tfnlp.functional.products import times_table
from tfnlp.layers.core.base_layer import BIAS_OPTIONS, KERNEL_OPTIONS
from tfnlp.layers.embeddings.token_layer import TokenLayer, as_ids


@keras.saving.register_keras_serializable("tfnlp")
class FactorizedEmbedding(TokenLayer):
    """A (V, E) table followed by an (E, D) projection, E much smaller than D.

    Lan et al. 2020, 'ALBERT', section 3.1: V x D parameters become V x E + E x D. The same
    weights serve as the output over the vocabulary: the table transposed, after the projection
    transposed where the states are D wide (Press & Wolf 2017).

    Args:
        vocabulary_size: V, the number of tokens.
        embedding_dim: E, the width of the table.
        hidden_dim: D, the width of the output.
        use_bias: whether the projection adds a bias.
        embeddings_initializer: for the table.
        kernel_initializer: for the projection.
        use_output_bias: whether the tied output adds a bias (V,), as ALBERT's does.
        pad_token_id: the id of padding, which a Keras mask hides from later layers, like
            `mask_zero` of `keras.layers.Embedding`; None for no mask.
        embeddings_regularizer, embeddings_constraint: for the table.
        kernel_regularizer, kernel_constraint: for the projection.
        bias_initializer, bias_regularizer, bias_constraint: for both biases.

    Call arguments:
        inputs: (B, L) integers below V; with `reverse`, states (..., E) or (..., D).
        reverse: whether to go from states to logits.

    Returns:
        (B, L, D); with `reverse` (..., V).

    Raises:
        ValueError: for states of another width than E or D.
    """

    OPTIONS = TokenLayer.OPTIONS + KERNEL_OPTIONS + BIAS_OPTIONS

    def __init__(
        self,
        vocabulary_size,
        embedding_dim,
        hidden_dim,
        use_bias=True,
        embeddings_initializer="uniform",
        kernel_initializer="glorot_uniform",
        use_output_bias=False,
        pad_token_id=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.keep(locals())
        self.projection = self._dense(hidden_dim, "projection", use_bias=use_bias)

    def build(self, inputs_shape):
        self.token_table = self._weight(
            "embeddings",
            "token_table",
            (self.vocabulary_size, self.embedding_dim),
            self.embeddings_initializer,
        )
        self.projection.build((None, None, self.embedding_dim))
        self.output_bias = None
        if self.use_output_bias:
            self.output_bias = self._weight(
                "bias", "output_bias", (self.vocabulary_size,), self.bias_initializer
            )

    def call(self, inputs, reverse=False):
        if not reverse:
            x = self.lookup(self.token_table, as_ids(inputs))  # (B, L, E)
            return attach_padding_mask(self.projection(x), inputs, self.pad_token_id)  # (B, L, D)
        self._check_states(inputs)
        x = ops.cast(inputs, self.compute_dtype)
        if x.shape[-1] != self.embedding_dim:
            x = times_table(x, ops.transpose(self.projection.float_kernel()))  # (..., E)
        logits = times_table(x, ops.transpose(self.token_table))  # (..., V)
        return logits if self.output_bias is None else logits + self.output_bias

    def _check_states(self, inputs):
        if inputs.shape[-1] not in (self.embedding_dim, self.hidden_dim):
            raise ValueError(
                f"inputs have width {inputs.shape[-1]}, but reverse=True takes states of width "
                f"embedding_dim={self.embedding_dim} or hidden_dim={self.hidden_dim}."
            )

    def compute_output_spec(self, inputs, reverse=False):
        if reverse:
            self._check_states(inputs)
            return self._specs((*inputs.shape[:-1], self.vocabulary_size))
        x = self._specs((*inputs.shape, self.hidden_dim))
        return attach_padding_mask(x, inputs, self.pad_token_id)
