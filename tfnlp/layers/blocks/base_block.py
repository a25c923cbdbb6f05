"""Base class of the transformer blocks."""

import keras

from tfnlp.layers.attention.multi_head import MultiHeadAttention
from tfnlp.layers.blocks.feed_forward import FeedForward
from tfnlp.layers.core.base_layer import BIAS_OPTIONS, KERNEL_OPTIONS, BaseLayer
from tfnlp.layers.core.layer_normalization import LayerNormalization

# The arguments that are passed on as they are and are in the config.
SIZES_AND_RATES = (
    "num_heads",
    "intermediate_dim",
    "activation",
    "dropout",
    "attention_dropout",
    "norm_first",
    "layer_norm_epsilon",
    "block_size",
    "key_dim",
)


class BaseBlock(BaseLayer):
    """Base class of the transformer blocks: arguments, sub-layers and residuals.

    A sub-layer named `part` has a norm and a dropout: the attributes `{part}_norm` and
    `{part}_dropout_layer`, unless a subclass overrides `_around`.

    Args:
        num_heads: N; must divide the input width D where there is no `key_dim`.
        intermediate_dim: F, the inner width of the feed-forward network.
        activation: of the feed-forward network.
        dropout: applied to the sub-layers' outputs in training.
        attention_dropout: applied to the attention weights in training.
        norm_first: pre-norm, `x + f(norm(x))`, where true; post-norm, `norm(x + f(x))`, else.
        layer_norm_epsilon: added to the variance.
        kernel_initializer, kernel_regularizer, kernel_constraint: for every kernel.
        block_size: of the attention, as `MultiHeadAttention` takes it.
        key_dim: H, the size of one head, as `MultiHeadAttention` takes it; D / N if None.
        bias_initializer, bias_regularizer, bias_constraint: for the biases of the attention and
            of the feed-forward network.
    """

    OPTIONS = KERNEL_OPTIONS + BIAS_OPTIONS
    # Class of the attention that is created if none is passed.
    ATTENTION = MultiHeadAttention
    # True if the block is recomputed for its gradients; see `recompute_blocks`.
    recompute = False

    def __init__(
        self,
        *,
        num_heads,
        intermediate_dim,
        activation,
        dropout,
        attention_dropout,
        norm_first,
        layer_norm_epsilon,
        kernel_initializer,
        block_size=None,
        key_dim=None,
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
        self.block_size = block_size
        self.key_dim = key_dim

    def sizes_and_rates(self):
        """Return the arguments by name, without initializers and `options`."""
        return {name: getattr(self, name) for name in SIZES_AND_RATES}

    def _norm(self, name):
        return LayerNormalization(
            epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name=name
        )

    def _feed_forward(self, **kwargs):
        return FeedForward(
            self.intermediate_dim,
            self.activation,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name="feed_forward",
            **self.options(),
            **kwargs,
        )

    def _attention(self, width, name="attention", **kwargs):
        """Create the block's attention for inputs of a width."""
        if not self.num_heads or (self.key_dim is None and width % self.num_heads):
            raise ValueError(
                f"num_heads={self.num_heads} does not divide the input width {width}; "
                "choose a number of heads that does."
            )
        options = {k: v for k, v in self.options().items() if k in self.ATTENTION.OPTIONS}
        return self.ATTENTION(
            self.num_heads,
            self.key_dim or width // self.num_heads,
            dropout=self.attention_dropout,
            block_size=self.block_size,
            kernel_initializer=self.kernel_initializer.clone(),
            dtype=self.dtype_policy,
            name=name,
            **options,
            **kwargs,
        )

    def _around(self, part):
        """Return the norm and the dropout of a sub-layer."""
        return getattr(self, f"{part}_norm"), getattr(self, f"{part}_dropout_layer")

    def _before(self, part, x):
        """Return the input of a sub-layer: `x`, normalised where `norm_first` is true."""
        norm, _ = self._around(part)
        return norm(x) if self.norm_first else x

    def _after(self, part, x, y, training):
        """Return `x + dropout(y)` for a sub-layer's output y, normalised in a post-norm block."""
        norm, dropout = self._around(part)
        x = x + dropout(y, training=training)
        return x if self.norm_first else norm(x)

    def _residual(self, part, function, x, training):
        return self._after(part, x, function(self._before(part, x)), training)

    def compute_mask(self, inputs, previous_mask=None, **kwargs):
        return previous_mask
