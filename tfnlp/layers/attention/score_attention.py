"""Attention of recurrent encoder-decoders (Bahdanau; Luong)."""

import keras
from keras import ops

from tfnlp.functional.attention import fused_attention
from tfnlp.functional.products import times_transposed
from tfnlp.layers.attention.attention_call import AttentionCall
from tfnlp.layers.core.base_layer import BIAS_OPTIONS, KERNEL_OPTIONS, BaseLayer, check_states
from tfnlp.quantization.fake_quantization import WEIGHT_RANGE

SCORES = ("dot", "general", "concat")


@keras.saving.register_keras_serializable("tfnlp")
class ScoreAttention(BaseLayer):
    """Attention of decoder states to encoder states, with one of three scores.

    Luong et al. 2015, section 3.1: `dot` is h_t . h_s, `general` is h_t . (W h_s), and `concat`
    is v . tanh(W [h_t; h_s]), which is Bahdanau et al. 2015 (appendix A.1.2) written with one
    W. None of them is scaled.

    Args:
        score: "dot", "general" or "concat".
        units: width of the tanh layer of `concat`; the width of the query if None.
        use_bias: whether the tanh layer of `concat` adds a bias; not in the papers.
        dropout: share of attention weights dropped in training.
        kernel_initializer, kernel_regularizer, kernel_constraint: for the kernels and for v.
        bias_initializer, bias_regularizer, bias_constraint: for that bias.

    Call arguments:
        query: (B, T, D), the decoder's states.
        value: (B, S, D'), the encoder's states.
        key: (B, S, D''), what the query is scored against; the value if None.
        attention_mask: (B, T, S), (B, 1, S), (T, S) or (B, 1, T, S), true where T may see S.
        return_attention_scores: also return the scores, (B, T, S).
        keys_projected: whether the key is what `project_keys` gave: once, for many queries.
        training: whether dropout is on.

    Returns:
        The context, (B, T, D'), or a pair of it and the scores before mask and softmax. A query
        that may see nothing gets zeros.

    Raises:
        ValueError: for an unknown score, units without `concat`, widths that `dot` cannot
            compare, and masks that do not fit.
    """

    OPTIONS = KERNEL_OPTIONS + BIAS_OPTIONS

    def __init__(
        self,
        score="general",
        units=None,
        use_bias=False,
        dropout=0.0,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if score not in SCORES:
            raise ValueError(f"score={score!r} must be one of {SCORES}.")
        if units is not None and (score != "concat" or units < 1):
            raise ValueError(
                f"units={units} must be at least 1, and is for score='concat' alone; "
                f"score is {score!r}."
            )
        self.supports_masking = True
        self.score = score
        self.units = units
        self.use_bias = use_bias
        self.dropout = dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def build(self, query_shape, value_shape, key_shape=None):
        check_states(query=query_shape, value=value_shape, key=key_shape)
        key_width = (key_shape or value_shape)[-1]
        width = query_shape[-1]
        if self.score == "dot" and key_width != width:
            raise ValueError(
                f"query has width {width} and key {key_width}, but score='dot' needs equal "
                "widths; use 'general' or 'concat'."
            )
        if self.score == "general":
            self.key = self._dense(width, "key", use_bias=False)
            self.key.build((None, None, key_width))
        if self.score == "concat":
            units = self.units or width
            self.query = self._dense(units, "query", use_bias=self.use_bias)
            self.key = self._dense(units, "key", use_bias=False)
            self.query.build((None, None, width))
            self.key.build((None, None, key_width))
            self.direction = self._dense(1, "direction", use_bias=False)
            self.direction.build((None, None, None, units))

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        keys_projected=False,
        training=None,
    ):
        product = self.products(training)
        call = AttentionCall(query_mask, value_mask, key_mask, attention_mask, product=product)
        key, value, key_mask = call.fill(query, value, key)
        mask = call.combine_masks(query, key, key_mask)
        key = key if keys_projected else self.project_keys(key)
        scores = self._scores(query, key, product)  # (B, T, S)
        dropout = self.dropout_layer if self.dropout and training else None
        context = fused_attention(scores, value, mask, dropout, product=product)
        return (context, scores) if return_attention_scores else context

    def rounded_tensors(self):
        names = ("value", "context")
        names += () if self.score == "concat" else ("query", "key", "scores")
        return dict.fromkeys(names) | {"weights": WEIGHT_RANGE}

    def project_keys(self, key):
        """Return the projected keys (B, S, D''), which do not depend on the query."""
        return key if self.score == "dot" else self.key(key)

    def _scores(self, query, key, product):
        """Compute the scores (B, T, S) of projected keys."""
        if self.score == "concat":
            # W [h_t; h_s] as the sum of two products: each state is projected once.
            hidden = self.query(query)[:, :, None] + key[:, None]  # (B, T, S, units)
            return self.direction(ops.tanh(hidden))[..., 0]
        return product("scores", times_transposed, query=query, key=key)

    def compute_output_spec(
        self, query, value, key=None, *masks, return_attention_scores=False, **kwargs
    ):
        shapes = [(*query.shape[:-1], width) for width in (value.shape[-1], value.shape[1])]
        return self._specs(*shapes[: 1 + bool(return_attention_scores)])

    def compute_mask(self, query, previous_mask=None, **kwargs):
        return previous_mask[0] if isinstance(previous_mask, list | tuple) else previous_mask
