"""One block of the decoder of the encoder-decoder transformer."""

from typing import Unpack

import keras

from tfnlp.functional.recompute import recomputable
from tfnlp.layers.blocks.base_block import BaseBlock, BlockOptions, output_and_rest
from tfnlp.layers.core.base_layer import check_states


@keras.saving.register_keras_serializable("tfnlp")
class DecoderBlock(BaseBlock):
    """Causal self-attention, attention to the encoder, and feed-forward.

    Vaswani et al. 2017, section 3.1: each with a residual and a layer norm, `norm(x + f(x))`;
    or pre-norm, `x + f(norm(x))` (Xiong et al. 2020).

    Args: those of `BaseBlock`, with the paper's activation "relu", and
        feed_forward_dropout: applied between the two layers of the feed-forward network.

    Call arguments:
        inputs: (B, T, D), the decoder's states.
        encoder_outputs: (B, S, D'); None with an `encoder_cache`.
        attention_mask: (B, T, T), (B, 1, T), (T, T) or (B, N, T, T), true where a position may
            see another; with `use_causal_mask` never a later one.
        encoder_mask: (B, T, S), (B, 1, S) or (B, N, T, S), true where T may see S.
        use_causal_mask: hide every position after the query's own.
        return_attention_scores, return_projections: also return these results of both
            attentions.
        cache: of the self-attention, as `MultiHeadAttention` takes it: keys, values and a place.
            `attention_mask` (B, T, C) is then the only mask.
        encoder_cache: of the attention to the encoder, from its `project_source`.

    Returns:
        (B, T, D), or a tuple of it, the scores before the softmax, (B, N, T, T) and
        (B, N, T, S), and six projections, as asked for.

    Raises:
        ValueError: at build, if D is no multiple of `num_heads`.
    """

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        activation="relu",
        *,
        layer_norm_epsilon=1e-5,
        feed_forward_dropout=0.0,
        **kwargs: Unpack[BlockOptions],
    ):
        super().__init__(
            num_heads,
            intermediate_dim,
            activation,
            layer_norm_epsilon=layer_norm_epsilon,
            **kwargs,
        )
        self.feed_forward_dropout = feed_forward_dropout
        self.feed_forward = self._feed_forward(dropout=feed_forward_dropout)
        self.norms, self.dropouts = {}, {}
        for part in ("attention", "cross_attention", "feed_forward"):
            self.norms[part] = self._norm(f"{part}_norm")
            self.dropouts[part] = self._dropout_layer(self.dropout)

    def build(self, inputs_shape, encoder_outputs_shape):
        check_states(inputs=inputs_shape, encoder_outputs=encoder_outputs_shape)
        self.attention = self._attention(inputs_shape[-1])
        self.attention.build(inputs_shape)
        self.cross_attention = self._attention(inputs_shape[-1], "cross_attention")
        self.cross_attention.build(inputs_shape, encoder_outputs_shape)
        for part in (self.feed_forward, *self.norms.values()):
            part.build(inputs_shape)

    def _around(self, part):
        return self.norms[part], self.dropouts[part]

    @recomputable
    def call(
        self,
        inputs,
        encoder_outputs,
        attention_mask=None,
        encoder_mask=None,
        return_attention_scores=False,
        return_projections=False,
        training=None,
        inputs_mask=None,
        encoder_outputs_mask=None,
        *,
        use_causal_mask=True,
        cache=None,
        encoder_cache=None,
    ):
        options = {
            "return_attention_scores": return_attention_scores,
            "return_projections": return_projections,
            "training": training,
        }
        attended, further = output_and_rest(
            self.attention(
                self._before("attention", inputs),
                attention_mask=attention_mask,
                key_mask=inputs_mask,
                use_causal_mask=use_causal_mask,
                cache=cache,
                **options,
            )
        )
        x = self._after("attention", inputs, attended, training)
        attended, cross_further = output_and_rest(
            self.cross_attention(
                self._before("cross_attention", x),
                encoder_outputs,
                attention_mask=encoder_mask,
                value_mask=encoder_outputs_mask,
                cache=encoder_cache,
                **options,
            )
        )
        x = self._after("cross_attention", x, attended, training)
        x = self._fed_forward(x, training)
        return self._results(x, further, cross_further, options)

    def _results(self, output, further, cross_further, options):
        """Return the output, or a tuple of it, both scores, and then all projections."""
        count = int(bool(options.get("return_attention_scores")))
        results = further[:count] + cross_further[:count] + further[count:] + cross_further[count:]
        return (output, *results) if results else output

    def compute_output_spec(self, inputs, encoder_outputs, *masks, **options):
        names = ("return_attention_scores", "return_projections")
        options = {name: options[name] for name in names if name in options}
        _, further = output_and_rest(self.attention.compute_output_spec(inputs, **options))
        _, cross_further = output_and_rest(
            self.cross_attention.compute_output_spec(inputs, encoder_outputs, **options)
        )
        return self._results(self._specs(inputs.shape), further, cross_further, options)
