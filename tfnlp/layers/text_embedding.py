"""Token, position and segment embeddings, summed and normalised."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("tfnlp")
class TextEmbedding(keras.layers.Layer):
    """The input layer of BERT: `norm(token + position + segment)`.

    Devlin et al. 2019, 'BERT', section 3 and figure 2.

    Args:
        vocabulary_size: V, the number of tokens.
        hidden_dim: D, the width of every embedding.
        max_length: the number of learned positions, the longest input there can be.
        num_segments: the number of segments; 0 for no segment embedding.
        dropout: applied to the sum in training.
        layer_norm_epsilon: added to the variance.
        embeddings_initializer: for the tables.

    Call arguments:
        token_ids: (B, L) integers below V.
        segment_ids: (B, L) integers below `num_segments`; all 0 where None.

    Returns:
        (B, L, D).

    Raises:
        ValueError: for a known length above `max_length`.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        max_length,
        num_segments=2,
        dropout=0.0,
        layer_norm_epsilon=1e-12,
        embeddings_initializer="uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.max_length = max_length
        self.num_segments = num_segments
        self.dropout = dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
        )
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def build(self, token_ids_shape, segment_ids_shape=None):
        self.token_table = self._table("token_table", self.vocabulary_size)
        self.position_table = self._table("position_table", self.max_length)
        if self.num_segments:
            self.segment_table = self._table("segment_table", self.num_segments)
        self.norm.build((*token_ids_shape, self.hidden_dim))

    def _table(self, name, rows):
        return self.add_weight(
            name=name,
            shape=(rows, self.hidden_dim),
            initializer=self.embeddings_initializer.clone(),
        )

    def call(self, token_ids, segment_ids=None, training=None):
        if token_ids.shape[1] is not None and token_ids.shape[1] > self.max_length:
            raise ValueError(
                f"token_ids has length {token_ids.shape[1]}, but there are only "
                f"max_length={self.max_length} positions; cut the input."
            )
        length = ops.shape(token_ids)[1]
        x = ops.take(self.token_table, token_ids, axis=0)  # (B, L, D)
        # A gather, not a slice: TFLite's quantisation reaches the tables of gathers alone.
        x = x + ops.take(self.position_table, ops.arange(length), axis=0)[None]  # (1, L, D)
        if self.num_segments:
            if segment_ids is None:
                x = x + self.segment_table[:1][None]
            else:
                x = x + ops.take(self.segment_table, segment_ids, axis=0)
        x = self.norm(ops.cast(x, self.compute_dtype))
        return self.dropout_layer(x, training=training)

    def compute_output_spec(self, token_ids, segment_ids=None, **kwargs):
        return keras.KerasTensor((*token_ids.shape, self.hidden_dim), dtype=self.compute_dtype)

    def get_config(self):
        return super().get_config() | {
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "max_length": self.max_length,
            "num_segments": self.num_segments,
            "dropout": self.dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }
