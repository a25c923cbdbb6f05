"""Attention of recurrent encoder-decoders (Bahdanau; Luong)."""

import functools

import keras
from keras import ops

from tfnlp.functional.attention import attend
from tfnlp.functional.masks import combine_masks
from tfnlp.layers.attention.base_attention import fill_inputs
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
        value, key, *masks = fill_inputs(
            query, value, key, query_mask, value_mask, key_mask, attention_mask
        )
        check_states(query=query.shape, value=value.shape, key=key.shape)
        seen = combine_masks(query.shape, key.shape, *masks)
        key = key if keys_projected else self.project_keys(key)
        scores = self._scores(query, key, training)  # (B, T, S)
        value = self._rounded("value", value)
        product = functools.partial(self._product, ("weights", "value", "context"), training)
        how = self.dropout_layer, training, self._quantizer("weights"), product
        context = self._rounded("context", attend(scores[:, None], value[:, None], seen, *how))
        context = context[:, 0]
        return (context, scores) if return_attention_scores else context

    def rounded_tensors(self):
        names = ("value", "context")
        names += () if self.score == "concat" else ("query", "key", "scores")
        return dict.fromkeys(names) | {"weights": WEIGHT_RANGE}

    def _product(self, names, training, a, b):
        """Compute `a . b`; `names` are the quantizers of a, of b and of the product."""
        *of, into = map(self._quantizer, names)
        return self._integer_product(a, b, of, into, training)

    def project_keys(self, key):
        """Return the projected keys (B, S, D''), which do not depend on the query."""
        return key if self.score == "dot" else self.key(key)

    def _scores(self, query, key, training):
        """Compute the scores (B, T, S) of projected keys."""
        if self.score == "concat":
            # W [h_t; h_s] as the sum of two products: each state is projected once.
            hidden = self.query(query)[:, :, None] + key[:, None]  # (B, T, S, units)
            return self.direction(ops.tanh(hidden))[..., 0]
        query, key = self._rounded("query", query), self._rounded("key", key)
        names = "query", "key", "scores"
        return self._rounded(
            "scores", self._product(names, training, query, ops.swapaxes(key, 1, 2))
        )

    def compute_output_spec(
        self, query, value, key=None, *masks, return_attention_scores=False, **kwargs
    ):
        shapes = [(*query.shape[:-1], width) for width in (value.shape[-1], value.shape[1])]
        return self._specs(*shapes[: 1 + bool(return_attention_scores)])

    def compute_mask(self, query, previous_mask=None, **kwargs):
        return previous_mask[0] if isinstance(previous_mask, list | tuple) else previous_mask
