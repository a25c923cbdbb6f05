"""Base class of the transformer blocks."""

from typing import Unpack

from tfnlp.layers.attention.multi_head import MultiHeadAttention
from tfnlp.layers.blocks.feed_forward import FeedForward
from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.layer_normalization import LayerNormalization
from tfnlp.layers.core.weight_options import WeightOptions


class BlockOptions(WeightOptions, total=False):
    """Options that the blocks pass on to `BaseBlock`."""

    dropout: float
    attention_dropout: float
    norm_first: bool
    block_size: int | None
    key_dim: int | None


class BaseBlock(BaseLayer):
    """Base class of the transformer blocks: arguments, sub-layers and residuals.

    A sub-layer named `part` has a norm and a dropout: the attributes `{part}_norm` and
    `{part}_dropout_layer`, unless a subclass overrides `_around`.

    Args:
        num_heads: N; must divide the input width D where there is no `key_dim`.
        intermediate_dim: F, the inner width of the feed-forward network.
        activation: of the feed-forward network; "gelu" is exact.
        dropout: applied to the sub-layers' outputs in training.
        attention_dropout: applied to the attention weights in training.
        norm_first: pre-norm, `x + f(norm(x))`, where true; post-norm, `norm(x + f(x))`, else.
        layer_norm_epsilon: added to the variance.
        block_size: of the attention, as `MultiHeadAttention` takes it.
        key_dim: H, the size of one head, as `MultiHeadAttention` takes it; D / N if None.
        kernel_initializer, kernel_regularizer, kernel_constraint: for every kernel.
        bias_initializer, bias_regularizer, bias_constraint: for the biases of the attention and
            of the feed-forward network.
    """

    # Class of the attention that is created if none is passed.
    ATTENTION = MultiHeadAttention
    # True if the block is recomputed for its gradients; see `recompute_blocks`.
    recompute = False

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        activation="gelu",
        *,
        dropout=0.0,
        attention_dropout=0.0,
        norm_first=False,
        layer_norm_epsilon=1e-12,
        block_size=None,
        key_dim=None,
        **kwargs: Unpack[WeightOptions],
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.activation = activation
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.norm_first = norm_first
        self.layer_norm_epsilon = layer_norm_epsilon
        self.block_size = block_size
        self.key_dim = key_dim

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

    def _attention(self, width, name="attention", num_heads=None, **kwargs):
        """Create an attention of the block for inputs of a width.

        With `num_heads` it has other heads than the block's, of equal parts of the width.
        """
        key_dim = None if num_heads else self.key_dim
        num_heads = num_heads or self.num_heads
        if not num_heads or (key_dim is None and width % num_heads):
            raise ValueError(
                f"num_heads={num_heads} does not divide the input width {width}; "
                "choose a number of heads that does."
            )
        options = {k: v for k, v in self.options().items() if k in self.ATTENTION.OPTIONS}
        return self.ATTENTION(
            num_heads,
            key_dim or width // num_heads,
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

    def _fed_forward(self, x, training):
        """Return the output of the feed-forward network, within its residual."""
        y = self.feed_forward(self._before("feed_forward", x), training=training)
        return self._after("feed_forward", x, y, training)


def output_and_rest(results):
    """Return the output of a layer, and a list of its further results, which may be none."""
    output, *rest = results if isinstance(results, tuple | list) else (results,)
    return output, rest
