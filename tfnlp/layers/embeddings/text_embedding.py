"""Token, position and segment embeddings, summed and normalised."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.positions import check_length
from tfnlp.functional.products import times_table
from tfnlp.layers.core.base_layer import check_shared, serialize_shared
from tfnlp.layers.core.layer_normalization import LayerNormalization
from tfnlp.layers.core.weight_options import (
    BiasOptions,
    EmbeddingsOptions,
    KernelPenalties,
)
from tfnlp.layers.embeddings.token_layer import TokenLayer, as_ids


class TextEmbeddingOptions(EmbeddingsOptions, KernelPenalties, BiasOptions, total=False):
    """Options of a `TextEmbedding`, whose projection starts as its tables do."""


@keras.saving.register_keras_serializable("tfnlp")
class TextEmbedding(TokenLayer):
    """Input embeddings of BERT-like models: `norm(token + position + segment)`.

    Devlin et al. 2019, 'BERT', section 3 and figure 2. With `embedding_dim` the tables have
    that width and the sum is projected, as ALBERT (Lan et al. 2020, section 3.1) and ELECTRA
    have it: norm, dropout, then the projection.

    Args: those of `TokenLayer`, and
        max_length: the number of learned positions, the longest input there can be; None for
            no position embedding.
        num_segments: the number of segments; 0 for no segment embedding.
        dropout: applied to the sum in training.
        layer_norm_epsilon: added to the variance.
        embedding_dim: E, the width of the tables; D, and no projection, if None.
        position_offset: rows before the first position's, as RoBERTa has them.
        use_norm: whether the sum is normalised.
        center: whether the norm adds a shift.
        kernel_regularizer, kernel_constraint, bias_initializer, bias_regularizer,
            bias_constraint: for the projection, whose kernel starts as the tables do.

    Call arguments:
        token_ids: (B, L) integers below V; with `reverse` states (..., E).
        segment_ids: (B, L) integers below `num_segments`; all 0 if None, and where there is
            one segment.
        positions: (B, L) integers below `max_length`; 0 to L - 1 if None.
        reverse: multiply states with the token table, as a tied output does.

    Returns:
        (B, L, D); with `reverse` (..., V).

    Raises:
        ValueError: for a known length above `max_length`. Of a length that shows at run time
            alone see `check_length`. Ids beyond a table are not looked for: a CPU raises, a GPU
            takes zeros.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        max_length=None,
        *,
        num_segments=2,
        dropout=0.0,
        layer_norm_epsilon=1e-12,
        embedding_dim=None,
        position_offset=0,
        use_norm=True,
        center=True,
        pad_token_id=None,
        **kwargs: Unpack[TextEmbeddingOptions],
    ):
        super().__init__(vocabulary_size, hidden_dim, pad_token_id=pad_token_id, **kwargs)
        self.max_length = max_length
        self.num_segments = num_segments
        self.dropout = dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.position_offset = position_offset
        self.use_norm = use_norm
        self.center = center
        self.embedding_dim = embedding_dim or hidden_dim
        self.norm = None
        if use_norm:
            self.norm = LayerNormalization(
                epsilon=layer_norm_epsilon,
                center=center,
                dtype=self.dtype_policy,
                name="norm",
            )
        self.dropout_layer = self._dropout_layer(dropout)
        self._owner = None
        self.projection = None
        if embedding_dim is not None:
            self.projection = self._dense(hidden_dim, "projection", self.embeddings_initializer)

    def share(self, embedding):
        """Share the tables and norm of another `TextEmbedding`, but not its projection.

        Clark et al. 2020, 'ELECTRA', section 3.2. Call this before this layer is built, after
        the other is. A saved model keeps it.

        Raises:
            ValueError: if the tables differ in size, the other layer is not built yet, or this
                one is.
        """
        if self.built or not embedding.built:
            raise ValueError(
                f"{self.name} cannot share the tables of {embedding.name}: build "
                f"{embedding.name} first, and {self.name} after share()."
            )
        sizes = ("vocabulary_size", "embedding_dim", "max_length", "num_segments")
        for name in (*sizes, "position_offset", "use_norm", "center"):
            value, other = getattr(self, name), getattr(embedding, name)
            if value != other:
                raise ValueError(f"{name} is {value}, but that of the tables to share is {other}.")
        # In a function, so that Keras does not take it for a part of this layer.
        self._owner = lambda: embedding
        self._take_tables(embedding)

    def _take_tables(self, embedding):
        self.token_table, self.norm = embedding.token_table, embedding.norm
        if self.max_length:
            self.position_table = embedding.position_table
        if self.num_segments:
            self.segment_table = embedding.segment_table

    def build(self, token_ids_shape, segment_ids_shape=None):
        if self._owner is None:
            self._build_tables()
        if self.projection is not None:
            self.projection.build((None, None, self.embedding_dim))

    def _build_tables(self):
        width = self.embedding_dim
        self.token_table = self._table("token_table", self.vocabulary_size, width)
        if self.max_length:
            rows = self.max_length + self.position_offset
            self.position_table = self._table("position_table", rows, width)
        if self.num_segments:
            self.segment_table = self._table("segment_table", self.num_segments, width)
        if self.norm is not None:
            self.norm.build((None, None, self.embedding_dim))

    def call(self, token_ids, segment_ids=None, reverse=False, training=None, positions=None):
        if reverse:
            states = ops.cast(token_ids, self.compute_dtype)
            return times_table(states, ops.transpose(self._output_table()))  # (..., V)
        token_ids = check_length("token_ids", token_ids, self.max_length)
        x = self.lookup(self.token_table, as_ids(token_ids))  # (B, L, E)
        if self.max_length:
            # A gather, not a slice: TFLite's quantisation reaches the tables of gathers alone.
            if positions is None:
                rows = ops.arange(ops.shape(token_ids)[1]) + self.position_offset
                x = x + self.lookup(self.position_table, rows)[None]  # (1, L, E)
            else:
                rows = as_ids(positions) + self.position_offset
                x = x + self.lookup(self.position_table, rows)  # (B, L, E)
        if self.num_segments:
            # With one segment, a tokenizer that tells two apart does no harm.
            if segment_ids is None or self.num_segments == 1:
                x = x + self.segment_table[:1][None]
            else:
                x = x + self.lookup(self.segment_table, as_ids(segment_ids))
        x = ops.cast(x, self.compute_dtype)
        x = x if self.norm is None else self.norm(x)
        x = self.dropout_layer(x, training=training)
        x = x if self.projection is None else self.projection(x)
        return self._masked(x, token_ids)

    def _output_table(self):
        """Return the table that states are multiplied with, (V, E)."""
        return self.token_table

    def fields(self):
        embedding_dim = None if self.projection is None else self.embedding_dim
        return super().fields() | {"embedding_dim": embedding_dim}

    def get_config(self):
        shared = {} if self._owner is None else {"tables_of": serialize_shared(self._owner())}
        return super().get_config() | shared

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        owner = config.pop("tables_of", None)
        layer = cls(**config)
        if owner is not None:
            check_shared(owner, f"{layer.name} shares the tables of another layer")
            layer.share(keras.saving.deserialize_keras_object(owner))
        return layer
