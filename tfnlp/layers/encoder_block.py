"""One transformer encoder block."""

import keras

from tfnlp.layers.feed_forward import FeedForward
from tfnlp.layers.multi_head_attention import MultiHeadAttention


@keras.saving.register_keras_serializable("tfnlp")
class EncoderBlock(keras.layers.Layer):
    """Self-attention and feed-forward, each with a residual and a layer norm.

    Post-norm, `norm(x + f(x))`, as Vaswani et al. 2017 (section 3.1) and BERT have it, or
    pre-norm, `x + f(norm(x))`, as GPT-2 has it (Xiong et al. 2020, figure 1).

    Args:
        num_heads: N; must divide the input width D.
        intermediate_dim: F, the inner width of the feed-forward network.
        activation: of the feed-forward network; "gelu" is exact.
        dropout: applied to both sub-layers' outputs in training.
        attention_dropout: applied to the attention weights in training.
        norm_first: pre-norm where true.
        layer_norm_epsilon: added to the variance.
        kernel_initializer: for every kernel.

    Call arguments:
        inputs: (B, L, D).
        attention_mask: (B, T, S), (B, 1, S) or (T, S), true where T may see S.
        use_causal_mask: hide every position after the query's own.
        return_attention_scores: also return the scores before the softmax.

    Returns:
        (B, L, D), or a pair of it and the scores, (B, N, L, L).

    Raises:
        ValueError: at build, if D is no multiple of `num_heads`.
    """

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        activation="gelu",
        dropout=0.0,
        attention_dropout=0.0,
        norm_first=False,
        layer_norm_epsilon=1e-12,
        kernel_initializer="glorot_uniform",
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
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.attention = None
        self.feed_forward = FeedForward(
            intermediate_dim,
            activation,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name="feed_forward",
        )
        self.attention_norm = self._norm("attention_norm")
        self.feed_forward_norm = self._norm("feed_forward_norm")
        self.attention_dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.feed_forward_dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def _norm(self, name):
        return keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name=name
        )

    def build(self, input_shape):
        hidden_dim = input_shape[-1]
        if hidden_dim % self.num_heads:
            raise ValueError(
                f"num_heads={self.num_heads} does not divide the input width {hidden_dim}; "
                "choose a number of heads that does."
            )
        if self.attention is None:
            self.attention = MultiHeadAttention(
                self.num_heads,
                hidden_dim // self.num_heads,
                dropout=self.attention_dropout,
                kernel_initializer=self.kernel_initializer.clone(),
                dtype=self.dtype_policy,
                name="attention",
            )
        parts = (self.attention, self.feed_forward, self.attention_norm, self.feed_forward_norm)
        for part in parts:
            if not part.built:  # a part of another block is built already
                part.build(input_shape)

    def share(self, block, part):
        """Takes the "attention" or the "feed_forward" of another block, and its layer norm.

        To be called before this block is built.
        """
        setattr(self, part, getattr(block, part))
        setattr(self, f"{part}_norm", getattr(block, f"{part}_norm"))

    def call(
        self,
        inputs,
        attention_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=None,
        mask=None,
        inputs_mask=None,
    ):
        # Keras passes a mask on as `mask` beside one tensor, as `inputs_mask` beside several.
        mask = inputs_mask if mask is None else mask
        x = self.attention_norm(inputs) if self.norm_first else inputs
        attended, scores = self.attention(
            x,
            attention_mask=attention_mask,
            use_causal_mask=use_causal_mask,
            return_attention_scores=True,
            training=training,
            key_mask=mask,
        )
        x = inputs + self.attention_dropout_layer(attended, training=training)
        if self.norm_first:
            y = self.feed_forward(self.feed_forward_norm(x), training=training)
            y = x + self.feed_forward_dropout_layer(y, training=training)
        else:
            x = self.attention_norm(x)
            y = self.feed_forward(x, training=training)
            y = self.feed_forward_norm(x + self.feed_forward_dropout_layer(y, training=training))
        return (y, scores) if return_attention_scores else y

    def compute_output_spec(self, inputs, return_attention_scores=False, **kwargs):
        output = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        if not return_attention_scores:
            return output
        batch, length, _ = inputs.shape
        scores = keras.KerasTensor(
            (batch, self.num_heads, length, length), dtype=self.compute_dtype
        )
        return output, scores

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
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
