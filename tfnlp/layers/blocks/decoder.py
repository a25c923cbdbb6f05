"""One block of the decoder of the encoder-decoder transformer."""

import keras

from tfnlp.layers.blocks.base import BaseBlock
from tfnlp.layers.core.base_layer import check_states
from tfnlp.layers.core.masks import combine_masks
from tfnlp.layers.core.recompute import recomputable


@keras.saving.register_keras_serializable("tfnlp")
class DecoderBlock(BaseBlock):
    """Causal self-attention, attention to the encoder, and feed-forward.

    Vaswani et al. 2017, section 3.1: each with a residual and a layer norm, `norm(x + f(x))`;
    or pre-norm, `x + f(norm(x))` (Xiong et al. 2020).

    Args:
        num_heads: N; must divide the input width D.
        intermediate_dim: F, the inner width of the feed-forward network.
        activation: of the feed-forward network; the paper's is "relu".
        dropout: applied to the sub-layers' outputs in training.
        attention_dropout: applied to the attention weights in training.
        norm_first: pre-norm where true.
        layer_norm_epsilon: added to the variance.
        block_size: of both attentions, as `MultiHeadAttention` takes it.
        kernel_initializer, kernel_regularizer, kernel_constraint: for every kernel.
        bias_initializer, bias_regularizer, bias_constraint: for the biases of the attentions and
            of the feed-forward network.

    Call arguments:
        inputs: (B, T, D), the decoder's states.
        encoder_outputs: (B, S, D').
        attention_mask: (B, T, T), (B, 1, T), (T, T) or (B, N, T, T), true where a position may
            see another; with `use_causal_mask` no position sees a later one whatever it says.
        encoder_mask: (B, T, S), (B, 1, S) or (B, N, T, S), true where T may see S.
        use_causal_mask: hide every position after the query's own.
        return_attention_scores: also return the scores of both attentions.

    Returns:
        (B, T, D), or a tuple of it and the scores before the softmax, (B, N, T, T) and
        (B, N, T, S).

    Raises:
        ValueError: at build, if D is no multiple of `num_heads`.
    """

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        activation="relu",
        dropout=0.0,
        attention_dropout=0.0,
        norm_first=False,
        layer_norm_epsilon=1e-5,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(
            num_heads,
            intermediate_dim,
            activation,
            dropout,
            attention_dropout,
            norm_first,
            layer_norm_epsilon,
            kernel_initializer,
            **kwargs,
        )
        self.feed_forward = self._feed_forward()
        self.norms, self.dropouts = {}, {}
        for part in ("attention", "cross_attention", "feed_forward"):
            self.norms[part] = self._norm(f"{part}_norm")
            self.dropouts[part] = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

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
        use_causal_mask=True,
        return_attention_scores=False,
        training=None,
        inputs_mask=None,
        encoder_outputs_mask=None,
    ):
        shape, source_shape = inputs.shape, encoder_outputs.shape
        check_states(inputs=shape, encoder_outputs=source_shape)
        heads = {"num_heads": self.num_heads}
        seen = combine_masks(shape, shape, attention_mask, key_mask=inputs_mask, **heads)
        of_encoder = encoder_mask, None, encoder_outputs_mask, "encoder_mask"
        encoder_seen = combine_masks(shape, source_shape, *of_encoder, **heads)
        how = {"training": training, "return_attention_scores": return_attention_scores}
        scores = []

        def without_scores(output):
            if return_attention_scores:
                output, found = output
                scores.append(found)
            return output

        def attend(x):
            seeing = {"attention_mask": seen, "use_causal_mask": use_causal_mask}
            return without_scores(self.attention(x, **seeing, **how))

        def cross_attend(x):
            seeing = {"attention_mask": encoder_seen}
            return without_scores(self.cross_attention(x, encoder_outputs, **seeing, **how))

        x = self._residual("attention", attend, inputs, training)
        x = self._residual("cross_attention", cross_attend, x, training)
        x = self._residual("feed_forward", self.feed_forward, x, training)
        return (x, *scores) if return_attention_scores else x

    def compute_output_spec(
        self,
        inputs,
        encoder_outputs,
        attention_mask=None,
        encoder_mask=None,
        use_causal_mask=True,
        return_attention_scores=False,
        **kwargs,
    ):
        output = self._specs(inputs.shape)
        if not return_attention_scores:
            return output
        scores = {"return_attention_scores": True}
        _, own = self.attention.compute_output_spec(inputs, **scores)
        _, crossing = self.cross_attention.compute_output_spec(inputs, encoder_outputs, **scores)
        return output, own, crossing
