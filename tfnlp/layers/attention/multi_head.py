"""Multi-head attention (Vaswani et al. 2017)."""

import keras

from tfnlp.layers.attention.base import BaseAttention
from tfnlp.layers.attention.dot_product import scaled


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
        value_dim: size of one head in the values; `key_dim` where None.
        dropout: share of attention weights dropped in training.
        use_bias: whether the four projections add a bias.
        output_dim: width of the output; the width of the query where None.
        block_size: keys to attend to at a time, for long inputs (Rabe & Staats 2021); the
            (T, S) scores are never held then.
        kernel_initializer: for the four kernels.
        output_initializer: for the output's kernel; `kernel_initializer` where None.
        activity_regularizer, kernel_regularizer, bias_regularizer, kernel_constraint,
            bias_constraint, bias_initializer: for the four projections, as Keras takes them.

    Call arguments:
        query: (B, T, D).
        value: (B, S, D'); the query where None (self-attention).
        key: (B, S, D'); the value where None.
        attention_mask: (B, T, S), (B, 1, S), (T, S) or (B, N, T, S), true where T may see S. By
            position it is the fourth, `layer(x, x, x, mask)`, as well as the seventh.
        return_attention_scores: also return the scores, (B, N, T, S).
        training: whether dropout is on.
        use_causal_mask: hide every position after the query's own.
        return_projections: also return query (B, N, T, H), key (B, N, S, H) and value (B, N, S,
            H'), as they are projected for each head, not yet scaled.

    Returns:
        (B, T, D), or a tuple of it, the scores and the projections, as asked for. A query that may
        see nothing gets the output bias alone, its attention being zeros.

    Raises:
        ValueError: for sizes below 1, for masks that do not fit, and where the scores are
            asked for with `block_size`.
    """

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
    ):
        masks = query_mask, value_mask, key_mask, attention_mask, mask
        q, k, v, seen = self._inputs(query, value, key, masks, use_causal_mask)
        how = {"training": training, "return_attention_scores": return_attention_scores}
        projections = (q, k, v) if return_projections else ()
        q = self._rounded("query", scaled(q))
        return self._attend(q, k, v, seen, projections=projections, **how)
