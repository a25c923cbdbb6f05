"""Adaptive input: frequent tokens get wide embeddings, rare ones narrow."""

import itertools
import math
from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.products import times_table
from tfnlp.functional.vocabulary_clusters import cluster_widths, clusters
from tfnlp.layers.core.weight_options import EmbeddingsOptions, KernelOptions
from tfnlp.layers.embeddings.token_layer import TokenLayer, as_ids


class AdaptiveOptions(EmbeddingsOptions, KernelOptions, total=False):
    """Options of an `AdaptiveEmbedding`: of its tables and projections."""


@keras.saving.register_keras_serializable("tfnlp")
class AdaptiveEmbedding(TokenLayer):
    """Token embeddings whose width falls with the tokens' frequency, and a projection of each.

    Baevski & Auli 2019, 'Adaptive input representations', section 3; as Transformer-XL (Dai et
    al. 2019) has it: the i-th cluster of ids is `embedding_dim / div_value**i` wide, each has a
    projection to D, and the result is scaled by sqrt(D). Ids must be sorted by falling
    frequency.

    Args: those of `TokenLayer`, and
        cutoffs: the first id of each cluster after the first; one cluster where empty.
        embedding_dim: E, the width of the first cluster's embeddings; D if None.
        div_value: by how much each cluster is narrower than the one before. With 1 and E = D
            there are no projections.
        dropout: applied to the output in training.
        kernel_initializer, kernel_regularizer, kernel_constraint: for the projections.

    Call arguments:
        token_ids: (B, L) integers below V.
        return_tables: also give the weights, for a tied `AdaptiveSoftmax`.

    Returns:
        (B, L, D); with `return_tables` this, a list of tables (V_i, E_i) and a list of
        projections (E_i, D), which is empty where there are none.

    Raises:
        ValueError: for cutoffs that do not rise, and more clusters than E has room for.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        cutoffs=(),
        *,
        embedding_dim=None,
        div_value=4,
        dropout=0.0,
        pad_token_id=None,
        **kwargs: Unpack[AdaptiveOptions],
    ):
        super().__init__(vocabulary_size, hidden_dim, pad_token_id=pad_token_id, **kwargs)
        self.div_value = div_value
        self.dropout = dropout
        self.cutoffs = tuple(cutoffs)
        self.embedding_dim = embedding_dim or hidden_dim
        self.ends = clusters(vocabulary_size, self.cutoffs)
        self.widths = cluster_widths(self.embedding_dim, div_value, len(self.ends) - 1)
        self.dropout_layer = self._dropout_layer(dropout)

    def build(self, token_ids_shape):
        sizes = [b - a for a, b in itertools.pairwise(self.ends)]
        self.tables = [
            self._table(f"table_{i}", *shape)
            for i, shape in enumerate(zip(sizes, self.widths, strict=True))
        ]
        self.projections = []
        if self.div_value != 1 or self.embedding_dim != self.hidden_dim:
            self.projections = [
                self._weight(
                    "kernel", f"projection_{i}", (width, self.hidden_dim), self.kernel_initializer
                )
                for i, width in enumerate(self.widths)
            ]

    def call(self, token_ids, return_tables=False, training=None):
        token_ids = as_ids(token_ids)
        parts = []
        for start, end, table in zip(self.ends, self.ends[1:], self.tables, strict=False):
            rows = ops.take(table, ops.clip(token_ids - start, 0, end - start - 1), axis=0)
            inside = ops.logical_and(token_ids >= start, token_ids < end)
            parts.append(rows * ops.cast(inside, rows.dtype)[..., None])  # (B, L, E_i)
        if self.projections:
            # All but one part of a token are zeros: one product serves all clusters.
            x = ops.concatenate(parts, axis=-1)
            x = times_table(x, ops.concatenate(self.projections, axis=0))
        else:
            x = sum(parts)
        x = ops.cast(x * math.sqrt(self.hidden_dim), self.compute_dtype)
        x = self.dropout_layer(x, training=training)
        x = self._masked(x, token_ids)
        if not return_tables:
            return x
        tables, projections = (
            [ops.cast(weight, self.compute_dtype) for weight in weights]
            for weights in (self.tables, self.projections)
        )
        return x, tables, projections

    def compute_output_spec(self, token_ids, return_tables=False, **kwargs):
        x = super().compute_output_spec(token_ids)
        if not return_tables:
            return x
        tables, projections = (
            [self._specs(weight.shape) for weight in weights]
            for weights in (self.tables, self.projections)
        )
        return x, tables, projections
