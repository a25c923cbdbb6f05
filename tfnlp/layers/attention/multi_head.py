"""Multi-head attention (Vaswani et al. 2017)."""

import keras
from keras import ops

from tfnlp.functional.attention import Scores
from tfnlp.functional.attention_heads import scaled, split_heads
from tfnlp.functional.masks import combine_masks
from tfnlp.layers.attention.base_attention import BaseAttention
from tfnlp.layers.attention.keras_attention import layer_from_keras


@keras.saving.register_keras_serializable("tfnlp")
class MultiHeadAttention(BaseAttention):
    """`keras.layers.MultiHeadAttention`, but the scores it returns are those before the softmax.

    Arguments by position are those of Keras, with two differences: the value may be left out, and
    the scores are the scaled products before mask and softmax, which is what distillation
    compares. Vaswani et al. 2017, 'Attention Is All You Need', section 3.2: eq. 1 for one head,
    `concat(head_1 .. head_N) W^O` for all.

    Args:
        num_heads: N, the number of heads.
        key_dim: H, the size of one head in queries and keys.
        value_dim: size of one head in the values; `key_dim` if None.
        dropout: share of attention weights dropped in training.
        use_bias: whether the four projections add a bias.
        output_dim: width of the output; the width of the query if None.
        block_size: keys to attend to at a time, for long inputs (Rabe & Staats 2021); the
            (T, S) scores are never held then.
        kernel_initializer: for the four kernels.
        output_initializer: for the output's kernel; `kernel_initializer` if None.
        activity_regularizer, kernel_regularizer, bias_regularizer, kernel_constraint,
            bias_constraint, bias_initializer: for the four projections, as Keras takes them.

    Call arguments:
        query: (B, T, D).
        value: (B, S, D'); the query if None (self-attention).
        key: (B, S, D'); the value if None.
        attention_mask: (B, T, S), (B, 1, S), (T, S) or (B, N, T, S), true where T may see S. By
            position it is the fourth, `layer(x, x, x, mask)`, as well as the seventh.
        return_attention_scores: also return the scores, (B, N, T, S).
        training: whether dropout is on.
        use_causal_mask: hide every position after the query's own.
        return_projections: also return query (B, N, T, H), key (B, N, S, H) and value (B, N, S,
            H'), as they are projected for each head, not yet scaled.
        cache: what was projected before, so that it need not be again: keys (B, N, C, H), values
            (B, N, C, H'), and the first of the C places to put those of the query's own T tokens
            at, a scalar tensor; without it, a pair, nothing is put (cross-attention, by
            `project_source`). The query attends to the places that `attention_mask` (B, T, C)
            says, no other mask counting; the keys and values of `return_projections` are of all C.

    Returns:
        (B, T, D), or a tuple of it, the scores and the projections, as asked for. A query that may
        see nothing gets the output bias alone, its attention being zeros.

    Raises:
        ValueError: for sizes below 1, for masks that do not fit, where the scores are asked for
            with `block_size`, and for a cache of another batch.
    """

    @classmethod
    def from_keras(cls, attention):
        """Return the layer that equals a built `keras.layers.MultiHeadAttention`, weights too.

        Args:
            attention: of inputs (B, L, D), without gate and sliding window.

        Returns:
            A built `MultiHeadAttention` of the same sizes, dropout, initializers, regularizers,
            constraints and dtype, whose output (B, T, D) is that of `attention`.

        Raises:
            ValueError: if `attention` is not built, or computes what this layer does not.
        """
        return layer_from_keras(cls, attention)

    def build(self, query_shape, value_shape=None, key_shape=None):
        self._build_inputs(query_shape, value_shape, key_shape)
        self._build_output(query_shape)

    def call(
        self,
        query,
        value=None,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        mask=None,
        return_projections=False,
        cache=None,
    ):
        call = self._gather(
            query_mask,
            value_mask,
            key_mask,
            attention_mask,
            mask,
            use_causal_mask=use_causal_mask,
            training=training,
            return_attention_scores=return_attention_scores,
            return_projections=return_projections,
        )
        if cache is None:
            q, k, v, mask = self._inputs(call, query, value, key)
        else:
            q, k, v, mask = self._cached_inputs(query, attention_mask, cache)
        scores = Scores(scaled(q), k)  # q_i . k_j / sqrt(H), of (B, N, T, H) and (B, N, S, H)
        output, scores = self._attend(call, scores, v, mask)
        return call.results(output, scores, q, k, v)

    def project_source(self, value):
        """Compute the keys and values of other states, a `cache` for many queries.

        Args:
            value: (B, S, D').

        Returns:
            Keys (B, N, S, H) and values (B, N, S, H').
        """
        pairs = ((self.key, value), (self.value, value))
        return tuple(split_heads(dense(x), self.num_heads) for dense, x in pairs)

    def _cached_inputs(self, query, attention_mask, cache):
        """Project the inputs as `_inputs` does, and put the query's keys and values in a cache."""
        keys, values, *place = cache
        if query.shape[0] not in (None, keys.shape[0]):
            raise ValueError(
                f"cache is of a batch of {keys.shape[0]}, but query of one of {query.shape[0]}; "
                "give the cache that was made for it."
            )
        mask = combine_masks(query.shape, (keys.shape[0], keys.shape[2]), attention_mask)
        if not place:
            return split_heads(self.query(query), self.num_heads), keys, values, mask
        q, k, v = self._project(query, query, query)
        k = ops.slice_update(keys, (0, 0, *place, 0), k)
        v = ops.slice_update(values, (0, 0, *place, 0), v)
        return q, k, v, mask
