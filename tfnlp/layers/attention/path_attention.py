"""Hierarchical attention over the paths between pairs of concepts."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.attention import masked_softmax
from tfnlp.functional.masks import zero_masked_rows
from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.weight_options import KernelOptions


@keras.saving.register_keras_serializable("tfnlp")
class PathAttention(BaseLayer):
    """Attention over the paths of each pair of concepts, then over the pairs.

    Lin et al. 2019, 'KagNet', section 4.3, with the text's vector s, the vector T_ij of a pair of
    concepts and the vectors P_ijk of the paths between them:

        a_ijk = T_ij W_1 P_ijk,      R_ij = sum_k softmax_k(a_ijk) P_ijk,
        b_ij  = s W_2 T_ij,          g = sum_ij softmax_ij(b_ij) [R_ij; T_ij].

    Args:
        kernel_initializer, kernel_regularizer, kernel_constraint: for W_1 and W_2.

    Call arguments:
        text: (B, D), s.
        pairs: (B, Q, T), T_ij.
        paths: (B, Q, M, P), P_ijk.
        path_mask: (B, Q, M), 1 at real paths; all if None. Pairs without a path do not count.

    Returns:
        g (B, P + T), zeros for a text without paths; the weights of the paths within their pair,
        (B, Q, M); the weights of the pairs, (B, Q).
    """

    keeps_positions = False

    def __init__(self, **kwargs: Unpack[KernelOptions]):
        super().__init__(**kwargs)

    def build(self, text_shape, pairs_shape, paths_shape, path_mask_shape=None):
        self.path_query = self._dense(paths_shape[-1], "path_query", use_bias=False)  # W_1
        self.pair_query = self._dense(pairs_shape[-1], "pair_query", use_bias=False)  # W_2
        self.path_query.build(pairs_shape)
        self.pair_query.build(text_shape)

    def call(self, text, pairs, paths, path_mask=None):
        if path_mask is None:
            path_mask = ops.ones(ops.shape(paths)[:-1], dtype="bool")
        path_mask = ops.cast(path_mask, "bool")  # (B, Q, M)
        pair_mask = ops.any(path_mask, axis=-1)  # (B, Q)
        scores = ops.einsum("bqp,bqmp->bqm", self.path_query(pairs), paths)
        path_weights = zero_masked_rows(masked_softmax(scores, path_mask), path_mask)
        pooled = ops.einsum("bqm,bqmp->bqp", path_weights, paths)  # R

        mask = ops.expand_dims(pair_mask, 1)  # (B, 1, Q)
        scores = ops.matmul(self.pair_query(text)[:, None], ops.swapaxes(pairs, 1, 2))
        pair_weights = zero_masked_rows(masked_softmax(scores, mask), mask)  # (B, 1, Q)
        vectors = ops.concatenate([pooled, pairs], axis=-1)
        return ops.matmul(pair_weights, vectors)[:, 0], path_weights, pair_weights[:, 0]

    def compute_output_spec(self, text, pairs, paths, path_mask=None, **kwargs):
        batch, count, paths_of_pair, width = paths.shape
        shapes = (batch, width + pairs.shape[-1]), (batch, count, paths_of_pair), (batch, count)
        return self._specs(*shapes)
