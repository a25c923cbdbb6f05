"""Multi-head attention (Vaswani et al. 2017)."""

import keras
from keras import ops

from tfnlp.layers.dot_product_attention import (
    attention_scores,
    masked_softmax,
    zero_masked_rows,
)
from tfnlp.layers.masks import causal_mask, combine_masks


@keras.saving.register_keras_serializable("tfnlp")
class MultiHeadAttention(keras.layers.Layer):
    """Scaled dot-product attention with N heads, for self and cross attention.

    Vaswani et al. 2017, 'Attention Is All You Need', section 3.2: eq. 1 for one head,
    `concat(head_1 .. head_N) W^O` for all. Arguments follow
    `keras.layers.MultiHeadAttention`, but the scores that are returned on request are the
    scaled products before mask and softmax, which is what distillation compares.

    Args:
        num_heads: N, the number of heads.
        key_dim: H, the size of one head in queries and keys.
        value_dim: size of one head in the values; `key_dim` where None.
        dropout: share of attention weights dropped in training.
        use_bias: whether the four projections add a bias.
        output_dim: width of the output; the width of the query where None.
        kernel_initializer: for the four kernels.

    Call arguments:
        query: (B, T, D).
        value: (B, S, D'); the query where None (self-attention).
        key: (B, S, D'); the value where None.
        attention_mask: (B, T, S), (B, 1, S) or (T, S), true where T may see S.
        return_attention_scores: also return the scores, (B, N, T, S).
        training: whether dropout is on.
        use_causal_mask: hide every position after the query's own.

    Returns:
        (B, T, D), or a pair of it and the scores. A query that may see nothing gets the
        output bias alone, its attention being zeros.

    Raises:
        ValueError: for sizes below 1 and for masks that do not fit.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        dropout=0.0,
        use_bias=True,
        output_dim=None,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        for name, size in (("num_heads", num_heads), ("key_dim", key_dim)):
            if size < 1:
                raise ValueError(f"{name}={size} must be at least 1.")
        self.supports_masking = True
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim or key_dim
        self.dropout = dropout
        self.use_bias = use_bias
        self.output_dim = output_dim
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.query = self._dense(num_heads * key_dim, "query")
        self.key = self._dense(num_heads * key_dim, "key")
        self.value = self._dense(num_heads * self.value_dim, "value")
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def _dense(self, units, name):
        # A fresh copy: one initializer instance would give every kernel the same values.
        initializer = self.kernel_initializer.clone()
        return keras.layers.Dense(
            units,
            use_bias=self.use_bias,
            kernel_initializer=initializer,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, query_shape, value_shape=None, key_shape=None):
        value_shape = value_shape or query_shape
        key_shape = key_shape or value_shape
        self.query.build(query_shape)
        self.key.build(key_shape)
        self.value.build(value_shape)
        self.output_dense = self._dense(self.output_dim or query_shape[-1], "output")
        self.output_dense.build((*query_shape[:-1], self.num_heads * self.value_dim))

    def call(
        self,
        query,
        value=None,
        key=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        mask=None,
    ):
        # Keras passes a mask on as `mask` beside one tensor, as `query_mask` beside several.
        query_mask = mask if query_mask is None else query_mask
        if value is None:
            value, value_mask = query, query_mask if value_mask is None else value_mask
        if key is None:
            key, key_mask = value, value_mask if key_mask is None else key_mask
        seen = combine_masks(query.shape, key.shape, attention_mask, query_mask, key_mask)
        if use_causal_mask:
            causal = causal_mask(ops.shape(query)[1], ops.shape(key)[1])
            seen = causal if seen is None else ops.logical_and(seen, causal)

        q = self._split_heads(self.query(query), self.key_dim)  # (B, N, T, H)
        k = self._split_heads(self.key(key), self.key_dim)  # (B, N, S, H)
        v = self._split_heads(self.value(value), self.value_dim)  # (B, N, S, H)
        scores = attention_scores(q, k)  # (B, N, T, S)
        weights = self.dropout_layer(masked_softmax(scores, seen), training=training)
        context = zero_masked_rows(ops.matmul(weights, v), seen)  # (B, N, T, H)
        output = self.output_dense(self._join_heads(context))  # (B, T, D)
        return (output, scores) if return_attention_scores else output

    def _split_heads(self, x, head_dim):
        """(B, L, N * H) to (B, N, L, H)."""
        x = ops.reshape(x, (-1, ops.shape(x)[1], self.num_heads, head_dim))
        return ops.transpose(x, (0, 2, 1, 3))

    def _join_heads(self, x):
        """(B, N, L, H) to (B, L, N * H)."""
        x = ops.transpose(x, (0, 2, 1, 3))
        return ops.reshape(x, (-1, ops.shape(x)[1], self.num_heads * self.value_dim))

    def compute_output_spec(self, query, value=None, key=None, **kwargs):
        output = keras.KerasTensor(
            (*query.shape[:-1], self.output_dim or query.shape[-1]), dtype=self.compute_dtype
        )
        if not kwargs.get("return_attention_scores"):
            return output
        source = query if value is None else value
        shape = (query.shape[0], self.num_heads, query.shape[1], source.shape[1])
        return output, keras.KerasTensor(shape, dtype=self.compute_dtype)

    def compute_mask(self, query, previous_mask=None, **kwargs):
        return previous_mask

    def get_config(self):
        return super().get_config() | {
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "output_dim": self.output_dim,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
