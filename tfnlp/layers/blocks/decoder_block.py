"""One block of the decoder of the encoder-decoder transformer."""

import functools

import keras

from tfnlp.functional.masks import combine_masks
from tfnlp.functional.recompute import recomputable
from tfnlp.layers.blocks.base_block import BaseBlock
from tfnlp.layers.core.base_layer import check_states


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
        feed_forward_dropout: applied between the two layers of the feed-forward network.
        block_size: of both attentions, as `MultiHeadAttention` takes it.
        kernel_initializer, kernel_regularizer, kernel_constraint: for every kernel.
        bias_initializer, bias_regularizer, bias_constraint: for the biases of the attentions and
            of the feed-forward network.

    Call arguments:
        inputs: (B, T, D), the decoder's states.
        encoder_outputs: (B, S, D'); None with an `encoder_cache`.
        attention_mask: (B, T, T), (B, 1, T), (T, T) or (B, N, T, T), true where a position may
            see another; with `use_causal_mask` never a later one.
        encoder_mask: (B, T, S), (B, 1, S) or (B, N, T, S), true where T may see S.
        use_causal_mask: hide every position after the query's own.
        return_attention_scores: also return the scores of both attentions.
        return_projections: also return query, key and value of both, as `MultiHeadAttention`
            gives them.
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
        dropout=0.0,
        attention_dropout=0.0,
        norm_first=False,
        layer_norm_epsilon=1e-5,
        kernel_initializer="glorot_uniform",
        *,
        feed_forward_dropout=0.0,
        **kwargs,
    ):
        super().__init__(
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            activation=activation,
            dropout=dropout,
            attention_dropout=attention_dropout,
            norm_first=norm_first,
            layer_norm_epsilon=layer_norm_epsilon,
            kernel_initializer=kernel_initializer,
            **kwargs,
        )
        self.feed_forward_dropout = feed_forward_dropout
        self.feed_forward = self._feed_forward(dropout=feed_forward_dropout)
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
        return_projections=False,
        cache=None,
        encoder_cache=None,
    ):
        shape, source_shape = inputs.shape, getattr(encoder_outputs, "shape", None)
        check_states(inputs=shape, encoder_outputs=source_shape)
        heads = {"num_heads": self.num_heads}
        if cache is None:
            mask = combine_masks(shape, shape, attention_mask, key_mask=inputs_mask, **heads)
            arguments = {"attention_mask": mask, "use_causal_mask": use_causal_mask}
        else:
            arguments = {"attention_mask": attention_mask, "cache": cache}
        if encoder_cache is None:
            masks = encoder_mask, None, encoder_outputs_mask, "encoder_mask"
            mask = combine_masks(shape, source_shape, *masks, **heads)
            cross_arguments = {"value": encoder_outputs, "attention_mask": mask}
        else:
            cross_arguments = {"attention_mask": encoder_mask, "cache": encoder_cache}
        scores, projections = [], []

        def run(attention, x, arguments):
            outputs = attention(
                x,
                return_attention_scores=return_attention_scores,
                return_projections=return_projections,
                training=training,
                **arguments,
            )
            if not (return_attention_scores or return_projections):
                return outputs
            x, *further = outputs
            scores.extend(further[: int(return_attention_scores)])
            projections.extend(further[int(return_attention_scores) :])
            return x

        attend = functools.partial(run, self.attention, arguments=arguments)
        cross_attend = functools.partial(run, self.cross_attention, arguments=cross_arguments)
        feed_forward = functools.partial(self.feed_forward, training=training)
        x = self._residual("attention", attend, inputs, training)
        x = self._residual("cross_attention", cross_attend, x, training)
        x = self._residual("feed_forward", feed_forward, x, training)
        return (x, *scores, *projections) if scores or projections else x

    def compute_output_spec(
        self,
        inputs,
        encoder_outputs,
        attention_mask=None,
        encoder_mask=None,
        use_causal_mask=True,
        return_attention_scores=False,
        return_projections=False,
        **kwargs,
    ):
        output = self._specs(inputs.shape)
        requested = {
            "return_attention_scores": return_attention_scores,
            "return_projections": return_projections,
        }
        if not any(requested.values()):
            return output
        _, *specs = self.attention.compute_output_spec(inputs, **requested)
        _, *cross = self.cross_attention.compute_output_spec(inputs, encoder_outputs, **requested)
        scores = int(return_attention_scores)
        return output, *specs[:scores], *cross[:scores], *specs[scores:], *cross[scores:]
