"""One block of the decoder of the encoder-decoder transformer."""

import keras

from tfnlp.layers.attention.multi_head import MultiHeadAttention
from tfnlp.layers.blocks.feed_forward import FeedForward
from tfnlp.layers.core.base_layer import BIAS_OPTIONS, KERNEL_OPTIONS, BaseLayer
from tfnlp.layers.core.layer_normalization import LayerNormalization
from tfnlp.layers.core.masks import combine_masks


@keras.saving.register_keras_serializable("tfnlp")
class DecoderBlock(BaseLayer):
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

    OPTIONS = KERNEL_OPTIONS + BIAS_OPTIONS

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
        block_size=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.activation = activation
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.norm_first = norm_first
        self.layer_norm_epsilon = layer_norm_epsilon
        self.block_size = block_size
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.feed_forward = FeedForward(
            intermediate_dim,
            activation,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name="feed_forward",
            **self.options(),
        )
        self.norms, self.dropouts = {}, {}
        for part in ("attention", "cross_attention", "feed_forward"):
            self.norms[part] = LayerNormalization(
                epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name=f"{part}_norm"
            )
            self.dropouts[part] = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def build(self, inputs_shape, encoder_outputs_shape):
        hidden_dim = inputs_shape[-1]
        if hidden_dim % self.num_heads:
            raise ValueError(
                f"num_heads={self.num_heads} does not divide the input width {hidden_dim}; "
                "choose a number of heads that does."
            )
        self.attention = self._attention(hidden_dim, "attention")
        self.attention.build(inputs_shape)
        self.cross_attention = self._attention(hidden_dim, "cross_attention")
        self.cross_attention.build(inputs_shape, encoder_outputs_shape)
        for part in (self.feed_forward, *self.norms.values()):
            part.build(inputs_shape)

    def _attention(self, hidden_dim, name):
        return MultiHeadAttention(
            self.num_heads,
            hidden_dim // self.num_heads,
            dropout=self.attention_dropout,
            block_size=self.block_size,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
            **self.options(),
        )

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
        attention_mask = combine_masks(
            shape, shape, attention_mask, None, inputs_mask, num_heads=self.num_heads
        )
        encoder_mask = combine_masks(
            shape,
            source_shape,
            encoder_mask,
            None,
            encoder_outputs_mask,
            name="encoder_mask",
            num_heads=self.num_heads,
        )
        scores = []

        def attend(x):
            output = self.attention(
                x,
                attention_mask=attention_mask,
                use_causal_mask=use_causal_mask,
                return_attention_scores=return_attention_scores,
                training=training,
            )
            return without_scores(output)

        def cross_attend(x):
            output = self.cross_attention(
                x,
                encoder_outputs,
                attention_mask=encoder_mask,
                return_attention_scores=return_attention_scores,
                training=training,
            )
            return without_scores(output)

        def without_scores(output):
            if return_attention_scores:
                output, found = output
                scores.append(found)
            return output

        x = self._residual("attention", attend, inputs, training)
        x = self._residual("cross_attention", cross_attend, x, training)
        x = self._residual("feed_forward", self.feed_forward, x, training)
        return (x, *scores) if return_attention_scores else x

    def _residual(self, part, function, x, training):
        norm, dropout = self.norms[part], self.dropouts[part]
        if self.norm_first:
            return x + dropout(function(norm(x)), training=training)
        return norm(x + dropout(function(x), training=training))

    def compute_output_spec(
        self, inputs, encoder_outputs, return_attention_scores=False, **kwargs
    ):
        output = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        if not return_attention_scores:
            return output
        batch, length, _ = inputs.shape
        sources = (length, encoder_outputs.shape[1])
        return output, *(
            keras.KerasTensor((batch, self.num_heads, length, source), dtype=self.compute_dtype)
            for source in sources
        )

    def compute_mask(self, inputs, previous_mask=None, **kwargs):
        return previous_mask

    def get_config(self):
        return super().get_config() | {
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "activation": self.activation,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "norm_first": self.norm_first,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "block_size": self.block_size,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
