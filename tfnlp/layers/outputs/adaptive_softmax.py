"""Adaptive softmax: rare tokens share a few entries of the first distribution."""

import itertools
from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.products import times_table
from tfnlp.functional.vocabulary_clusters import cluster_widths, clusters
from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.weight_options import WeightOptions


@keras.saving.register_keras_serializable("tfnlp")
class AdaptiveSoftmax(BaseLayer):
    """The log-probabilities of a large vocabulary, cut into clusters by frequency.

    Grave et al. 2017, 'Efficient softmax approximation for GPUs', section 4: the first cluster's
    softmax also has an entry for each later cluster c, and
    `log p(w) = log p(c) + log p(w | c)`. With labels, each cluster is computed only at the
    positions whose labels it holds, which makes the layer fast. Transformer-XL (Dai et al. 2019)
    ties tables and projections to those of its `AdaptiveEmbedding`, but the first projection.

    Args:
        vocabulary_size: V, the number of tokens.
        cutoffs: the first id of each cluster after the first; a plain softmax where empty.
        embedding_dim: E, the width of the first cluster; that of the states if None.
        div_value: by how much each cluster is narrower than the one before. With 1 and E = D
            there are no projections.
        kernel_initializer, kernel_regularizer, kernel_constraint: for the weights that the
            call does not pass.
        bias_initializer, bias_regularizer, bias_constraint: for the biases.

    Call arguments:
        states: (..., D).
        tables: a list of (V_i, E_i), as `AdaptiveEmbedding` gives them; the layer's own where
            None.
        projections: a list of (E_i, D), of which the first is not used; likewise.
        labels: (...,) integers below V, to get the log-probabilities of these alone; negative
            ones are passed over.

    Returns:
        (..., V) float32 log-probabilities, in order of the ids; with labels (...,) float32,
        0 at negative ones.

    Raises:
        ValueError: for cutoffs that do not rise, and more clusters than E has room for.
    """

    def __init__(
        self,
        vocabulary_size,
        cutoffs=(),
        embedding_dim=None,
        div_value=4,
        **kwargs: Unpack[WeightOptions],
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.embedding_dim = embedding_dim
        self.div_value = div_value
        self.cutoffs = tuple(cutoffs)
        self.ends = clusters(vocabulary_size, self.cutoffs)

    def build(self, states_shape, tables_shape=None, projections_shape=None, labels_shape=None):
        hidden_dim = states_shape[-1]
        width = self.embedding_dim or hidden_dim
        sizes = [b - a for a, b in itertools.pairwise(self.ends)]
        widths = cluster_widths(width, self.div_value, len(sizes))
        projected = self.div_value != 1 or width != hidden_dim
        self.projections, self.tables = {}, []
        for i, (size, width_i) in enumerate(zip(sizes, widths, strict=True)):
            if tables_shape is None:
                self.tables.append(self._kernel(f"table_{i}", (size, width_i)))
            if projected and (i == 0 or not projections_shape):
                self.projections[i] = self._kernel(f"projection_{i}", (width_i, hidden_dim))
        self.biases = [self._bias(f"bias_{i}", size) for i, size in enumerate(sizes)]
        if self.cutoffs:
            self.cluster_kernel = self._kernel("cluster_kernel", (len(self.cutoffs), width))
            self.cluster_bias = self._bias("cluster_bias", len(self.cutoffs))

    def _kernel(self, name, shape):
        return self._weight("kernel", name, shape, self.kernel_initializer)

    def _bias(self, name, size):
        return self._weight("bias", name, (size,), self.bias_initializer)

    def call(self, states, tables=None, projections=None, labels=None):
        tables = self.tables if tables is None else tables
        projections = dict(enumerate(projections or ())) | self.projections
        kernel, bias = tables[0], self.biases[0]
        if self.cutoffs:
            kernel = ops.concatenate([kernel, self.cluster_kernel], axis=0)
            bias = ops.concatenate([bias, self.cluster_bias], axis=0)
        first = _log_probs(states, kernel, bias, projections.get(0))  # (..., V_0 + clusters)

        def later(i, rows):
            return _log_probs(rows, tables[i], self.biases[i], projections.get(i))

        if labels is not None:
            return self._label_log_probs(states, first, later, labels)
        log_probs = [first[..., : self.ends[1]]]
        for i in range(1, len(self.biases)):
            column = self.ends[1] + i - 1
            log_probs.append(first[..., column : column + 1] + later(i, states))
        return ops.concatenate(log_probs, axis=-1) if self.cutoffs else log_probs[0]

    def _label_log_probs(self, states, first, later, labels):
        """Compute the log-probabilities (...,) of the labels only."""
        shape = ops.shape(labels)
        rows = ops.reshape(states, (-1, states.shape[-1]))  # (R, D)
        first = ops.reshape(first, (-1, first.shape[-1]))
        labels = ops.reshape(ops.cast(labels, "int32"), (-1,))  # (R,)
        is_label = labels >= 0
        labels = ops.maximum(labels, 0)
        cluster = sum((ops.cast(labels >= c, "int32") for c in self.cutoffs), 0 * labels)
        column = ops.where(cluster > 0, self.ends[1] + cluster - 1, labels)
        log_probs = ops.take_along_axis(first, column[:, None], axis=-1)[:, 0]
        for i in range(1, len(self.biases)):
            in_cluster = cluster == i
            # JAX compiles for known shapes only: there every cluster is computed for all rows.
            every_row = keras.backend.backend() == "jax"
            indices = ops.arange(ops.shape(rows)[0]) if every_row else ops.nonzero(in_cluster)[0]
            size = self.ends[i + 1] - self.ends[i]
            offsets = ops.clip(ops.take(labels, indices) - self.ends[i], 0, size - 1)
            value = later(i, ops.take(rows, indices, axis=0))  # (R_i, V_i)
            value = ops.take_along_axis(value, offsets[:, None], axis=-1)[:, 0]
            value = ops.where(ops.take(in_cluster, indices), value, 0.0)
            log_probs = log_probs + ops.scatter(indices[:, None], value, ops.shape(labels))
        return ops.reshape(ops.where(is_label, log_probs, 0.0), shape)

    def compute_output_spec(self, states, tables=None, projections=None, labels=None):
        if labels is not None:
            return keras.KerasTensor(labels.shape, dtype="float32")
        shape = (*states.shape[:-1], self.vocabulary_size)
        return keras.KerasTensor(shape, dtype="float32")


def _log_probs(states, table, bias, projection):
    """Compute log-probabilities (..., V_i), always float32."""
    if projection is not None:
        states = times_table(states, ops.transpose(projection))  # (..., E_i)
    logits = times_table(states, ops.transpose(table)) + bias
    return ops.log_softmax(ops.cast(logits, "float32"))
