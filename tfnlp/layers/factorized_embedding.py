"""Token embeddings as a product of two small matrices."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("tfnlp")
class FactorizedEmbedding(keras.layers.Layer):
    """A (V, E) table followed by an (E, D) projection, E much smaller than D.

    Lan et al. 2020, 'ALBERT', section 3.1: V x D parameters become V x E + E x D.

    Args:
        vocabulary_size: V, the number of tokens.
        embedding_dim: E, the width of the table.
        hidden_dim: D, the width of the output.
        use_bias: whether the projection adds a bias.
        embeddings_initializer: for the table.
        kernel_initializer: for the projection.

    Call arguments:
        token_ids: (B, L) integers below V.

    Returns:
        (B, L, D).
    """

    def __init__(
        self,
        vocabulary_size,
        embedding_dim,
        hidden_dim,
        use_bias=True,
        embeddings_initializer="uniform",
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        for name, size in (
            ("vocabulary_size", vocabulary_size),
            ("embedding_dim", embedding_dim),
            ("hidden_dim", hidden_dim),
        ):
            if size < 1:
                raise ValueError(f"{name}={size} must be at least 1.")
        self.vocabulary_size = vocabulary_size
        self.embedding_dim = embedding_dim
        self.hidden_dim = hidden_dim
        self.use_bias = use_bias
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.projection = keras.layers.Dense(
            hidden_dim,
            use_bias=use_bias,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name="projection",
        )

    def build(self, token_ids_shape):
        self.token_table = self.add_weight(
            name="token_table",
            shape=(self.vocabulary_size, self.embedding_dim),
            initializer=self.embeddings_initializer.clone(),
        )
        self.projection.build((*token_ids_shape, self.embedding_dim))

    def call(self, token_ids):
        x = ops.take(self.token_table, token_ids, axis=0)  # (B, L, E)
        return self.projection(x)  # (B, L, D)

    def compute_output_spec(self, token_ids):
        return keras.KerasTensor((*token_ids.shape, self.hidden_dim), dtype=self.compute_dtype)

    def get_config(self):
        return super().get_config() | {
            "vocabulary_size": self.vocabulary_size,
            "embedding_dim": self.embedding_dim,
            "hidden_dim": self.hidden_dim,
            "use_bias": self.use_bias,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
