"""Relative attention with memory (Transformer-XL)."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.attention import Scores
from tfnlp.functional.attention_heads import add_by_head, scaled, split_table
from tfnlp.functional.relative_positions import projected_sinusoids, relative_sinusoids
from tfnlp.functional.relative_scores import query_to_position
from tfnlp.functional.shapes import check_sizes
from tfnlp.layers.attention.base_attention import BaseAttention
from tfnlp.layers.core.weight_options import BiasPenalties, KernelOptions


class RelativeOptions(KernelOptions, BiasPenalties, total=False):
    """Options of a `RelativeAttention`, whose projections have biases that start at zero."""

    output_initializer: object


@keras.saving.register_keras_serializable("tfnlp")
class RelativeAttention(BaseAttention):
    """Attention by content and by relative position, over a memory of earlier positions.

    Dai et al. 2019, 'Transformer-XL', section 3.3: with r_{i-j} the projected sinusoids of the
    distance, W_R R_{i-j},
    `score(i, j) = (q_i . k_j + q_i . r_{i-j} + u . k_j + v . r_{i-j}) / sqrt(H)`, the paper's
    terms (a) to (d). The queries are the last T of the S keys. Arguments by position are those of
    `keras.layers.MultiHeadAttention`; the scores it returns are those before the softmax.

    Args: those of `BaseAttention`, and
        use_bias: whether query, key, value and output projections add a bias; not in the paper.
        clamp_length: the farthest distance that is told apart; any if None.
        position_dropout: share of the sinusoids dropped in training.
        bias_initializer: for u and v; other biases start at zero.

    Call arguments: those of `MultiHeadAttention` without `cache`, and
        use_causal_mask: hide every position after the query's own; the scores of hidden
            positions are not meaningful then.
        memory: (B, M, D), earlier positions to put before key and value, without gradient;
            S counts them.
        content_bias: u, (N, H), to share it between layers (see `RelativeBiases`); if None
            the layer has its own.
        position_bias: v, (N, H), likewise.

    Returns:
        (B, T, D), or a tuple of it, the scaled scores before mask and softmax, and the
        projections, as asked for. A query that may see nothing gets zeros, then the output bias.

    Raises:
        ValueError: for sizes below 1, an odd D, masks that do not fit, and where the scores are
            asked for with `block_size`.
    """

    STATES = ("memory",)

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        dropout=0.0,
        use_bias=False,
        output_dim=None,
        *,
        block_size=None,
        clamp_length=None,
        position_dropout=0.0,
        bias_initializer="random_normal",
        **kwargs: Unpack[RelativeOptions],
    ):
        kwargs |= {"output_dim": output_dim, "block_size": block_size}
        super().__init__(num_heads, key_dim, value_dim, dropout, use_bias, **kwargs)
        self.clamp_length = clamp_length
        self.position_dropout = position_dropout
        self.bias_initializer = keras.initializers.get(bias_initializer)
        check_sizes(clamp_length=clamp_length)
        self.position_dropout_layer = self._dropout_layer(position_dropout)

    def build(
        self,
        query_shape,
        value_shape=None,
        key_shape=None,
        memory_shape=None,
        content_bias_shape=None,
        position_bias_shape=None,
    ):
        self._build_inputs(query_shape, value_shape, key_shape)
        self.position = self._position_projection("position", query_shape[-1], use_bias=False)
        self._build_output(query_shape)
        self.content_bias = self._bias("content_bias", content_bias_shape)
        self.position_bias = self._bias("position_bias", position_bias_shape)

    def _bias(self, name, shared_shape=None):
        """Add a bias (N, H); None where the layer is called with a shared one."""
        shape = (self.num_heads, self.key_dim)
        if shared_shape is not None:
            if tuple(shared_shape) != shape:  # which would broadcast
                raise ValueError(f"{name} has shape {tuple(shared_shape)}, but must be {shape}.")
            return None
        return self._weight("bias", name, shape, self.bias_initializer)

    def rounded_tensors(self):
        return super().rounded_tensors() | {"position_query": None, "position_scores": None}

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
        *,
        memory=None,
        content_bias=None,
        position_bias=None,
    ):
        call = self._gather(
            query_mask=query_mask,
            value_mask=value_mask,
            key_mask=key_mask,
            attention_mask=attention_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            use_causal_mask=use_causal_mask,
            mask=mask,
            return_projections=return_projections,
        )
        q, k, v, mask = self._inputs(call, query, value, key, memory)
        u = self.content_bias if content_bias is None else content_bias  # (N, H)
        w = self.position_bias if position_bias is None else position_bias  # the paper's v, (N, H)
        lengths = ops.shape(q)[2], ops.shape(k)[2]
        r, rows = self._positions(call, *lengths)  # (N, R, H), (T + S - 1,)
        scaled_q = scaled(q)  # (B, N, T, H), over sqrt(H)
        # (a) q_i . k_j + (c) u . k_j
        scores = Scores(add_by_head(scaled_q, scaled(u)), k)
        # (b) q_i . r_{i-j} + (d) v . r_{i-j}
        by_position = add_by_head(scaled_q, scaled(w))
        scores += query_to_position(by_position, r, rows, causal=call.use_causal_mask)
        return self._attend(call, scores, (q, k, v), mask)

    def _positions(self, call, length, source_length):
        """Compute the projected sinusoids for lengths T and S, in the form of a `RelativeTerm`.

        Returns:
            (N, R, H), and the (T + S - 1,) rows of it for each offset of a key from a query.
        """
        lengths, drops = (length, source_length), self.position_dropout and call.training
        if call.use_causal_mask or drops or not self.position.is_plain:
            width, causal = self.position.kernel.shape[0], call.use_causal_mask
            r, rows = relative_sinusoids(*lengths, width, self.clamp_length, causal=causal)
            r = ops.cast(r, self.compute_dtype)
            r = self.position(self.position_dropout_layer(r, training=call.training))
        else:
            r, rows = projected_sinusoids(*lengths, self.position.kernel, self.clamp_length)
        return split_table(r, self.num_heads), rows
