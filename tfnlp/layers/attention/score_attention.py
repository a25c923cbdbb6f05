"""Attention of recurrent encoder-decoders (Bahdanau; Luong)."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.attention import fused_attention
from tfnlp.functional.products import times_transposed
from tfnlp.layers.attention.base_attention import AttentionCall
from tfnlp.layers.core.base_layer import BaseLayer, check_choice, check_states
from tfnlp.layers.core.weight_options import WeightOptions
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
        units: width of the tanh layer of `concat` alone; the width of the query if None.
        use_bias: whether the tanh layer of `concat` adds a bias; not in the papers.
        dropout: share of attention weights dropped in training.
        kernel_initializer, kernel_regularizer, kernel_constraint: for the kernels and for v.
        bias_initializer, bias_regularizer, bias_constraint: for that bias.

    Call arguments:
        query: (B, T, D), the decoder's states.
        value: (B, S, D'), the encoder's states.
        key: (B, S, D''), what the query is scored against; the value if None.
        attention_mask, return_attention_scores, training: as in `MultiHeadAttention`.
        keys_projected: whether the key is what `project_keys` gave: once, for many queries.

    Returns:
        The context, (B, T, D'), or a pair of it and the scores before mask and softmax, (B, T, S).
        A query that may see nothing gets zeros.

    Raises:
        ValueError: for an unknown score, and masks that do not fit.
    """

    def __init__(
        self,
        score="general",
        units=None,
        use_bias=False,
        dropout=0.0,
        **kwargs: Unpack[WeightOptions],
    ):
        super().__init__(**kwargs)
        self.score = score
        self.units = units
        self.use_bias = use_bias
        self.dropout = dropout
        check_choice("score", score, SCORES)
        self.dropout_layer = self._dropout_layer(dropout)

    def build(self, query_shape, value_shape, key_shape=None):
        check_states(query=query_shape, value=value_shape, key=key_shape)
        width, key_width = query_shape[-1], (key_shape or value_shape)[-1]
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
        training=None,
        *,
        keys_projected=False,
    ):
        call = AttentionCall(
            query_mask=query_mask,
            value_mask=value_mask,
            key_mask=key_mask,
            attention_mask=attention_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            product=self.products(training),
        )
        key, value, mask = call.inputs(query, value, key)
        key = key if keys_projected else self.project_keys(key)
        scores = self._scores(query, key, call.product)  # (B, T, S)
        dropout = self.dropout_layer if self.dropout and call.training else None
        context = fused_attention(scores, value, mask, dropout, product=call.product)
        return (context, scores) if call.return_attention_scores else context

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
