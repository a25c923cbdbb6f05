"""Encoder blocks that share weights across layers (ALBERT)."""

import keras

from tfnlp.functional.masks import set_mask
from tfnlp.layers.blocks.base_block import BaseBlock
from tfnlp.layers.blocks.encoder_block import SUBLAYERS, EncoderBlock
from tfnlp.layers.core.base_layer import check_states

SHARING = ("all", "attention", "feed_forward", "none")


@keras.saving.register_keras_serializable("tfnlp")
class SharedEncoder(BaseBlock):
    """Several encoder blocks over fewer weights.

    Lan et al. 2020, 'ALBERT', section 3.1 (cross-layer parameter sharing) and table 4 (all,
    attention only, feed-forward only). Each part is shared with its layer norm.

    Args:
        num_layers: the number of blocks that an input goes through.
        num_heads: N; must divide the input width D where there is no `key_dim`.
        intermediate_dim: F, the inner width of the feed-forward networks.
        sharing: "all", "attention", "feed_forward" or "none": the shared part of a group.
        num_groups: groups of consecutive layers that share; layer i is of group
            `i * num_groups // num_layers`.
        activation, dropout, attention_dropout, norm_first, layer_norm_epsilon,
            kernel_initializer, dropout_after, block_size, key_dim, kernel_regularizer,
            bias_regularizer, kernel_constraint, bias_constraint, bias_initializer: as
            `EncoderBlock` takes them.

    Call arguments:
        inputs: (B, L, D).
        attention_mask: (B, T, S), (B, 1, S), (T, S) or (B, N, T, S), true where T may see S.
        use_causal_mask: hide every position after the query's own.
        return_hidden_states: also return the input and every layer's output.
        return_attention_scores: also return every layer's scores before the softmax.
        return_projections: also return every layer's queries, keys and values.

    Returns:
        (B, L, D), or a tuple of it, then a list of num_layers + 1 tensors (B, L, D), then one
        of num_layers tensors (B, N, L, L), then three of num_layers tensors (B, N, L, H), as
        asked for.

    Raises:
        ValueError: for an unknown kind of sharing, or groups that do not divide the layers.
    """

    def __init__(
        self,
        num_layers,
        num_heads,
        intermediate_dim,
        sharing="all",
        num_groups=1,
        activation="gelu",
        dropout=0.0,
        attention_dropout=0.0,
        norm_first=False,
        layer_norm_epsilon=1e-12,
        kernel_initializer="glorot_uniform",
        dropout_after=SUBLAYERS,
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
        if sharing not in SHARING:
            raise ValueError(f"sharing={sharing!r} must be one of {SHARING}.")
        if num_layers < 1 or num_groups < 1 or num_layers % num_groups:
            raise ValueError(
                f"num_groups={num_groups} must divide num_layers={num_layers}, both at least 1."
            )
        self.num_layers = num_layers
        self.sharing = sharing
        self.num_groups = num_groups
        self.dropout_after = tuple(dropout_after)
        count = num_groups if sharing == "all" else num_layers
        self.blocks = [self._block(f"block_{i}") for i in range(count)]

    def _block(self, name):
        return EncoderBlock(
            **self.sizes_and_rates(),
            kernel_initializer=self.kernel_initializer.clone(),
            dropout_after=self.dropout_after,
            dtype=self.dtype_policy,
            name=name,
            **self.options(),
        )

    def build(self, input_shape):
        check_states(inputs=input_shape)
        per_group = self.num_layers // self.num_groups
        for i, block in enumerate(self.blocks):
            if self.sharing in ("attention", "feed_forward") and i % per_group:
                block.share(self.blocks[i - i % per_group], self.sharing)
            block.build(input_shape)

    def _in_order(self):
        """Return the block of each layer, first to last."""
        return [
            self.blocks[i * len(self.blocks) // self.num_layers] for i in range(self.num_layers)
        ]

    def call(
        self,
        inputs,
        attention_mask=None,
        use_causal_mask=False,
        return_hidden_states=False,
        return_attention_scores=False,
        training=None,
        mask=None,
        inputs_mask=None,
        return_projections=False,
    ):
        mask = inputs_mask if mask is None else mask
        x, states, further = inputs, [inputs], []
        for block in self._in_order():
            x = block(
                x,
                attention_mask=attention_mask,
                use_causal_mask=use_causal_mask,
                return_attention_scores=return_attention_scores,
                training=training,
                mask=mask,
                return_projections=return_projections,
            )
            if return_attention_scores or return_projections:
                x, *of_block = x
                further.append(of_block)
            states.append(x)
        return self._outputs(x, states, further, return_hidden_states)

    def _outputs(self, x, states, further, return_hidden_states):
        """Return x, hidden states if asked for, and `further`, regrouped from layers to kinds."""
        by_kind = [list(kind) for kind in zip(*further, strict=True)]
        extra = [states] * return_hidden_states + by_kind
        return (x, *extra) if extra else x

    def compute_output_spec(
        self,
        inputs,
        attention_mask=None,
        use_causal_mask=False,
        return_hidden_states=False,
        return_attention_scores=False,
        return_projections=False,
        mask=None,
        inputs_mask=None,
        **kwargs,
    ):
        mask = inputs_mask if mask is None else mask
        states = [self._specs(inputs.shape) for _ in range(self.num_layers + 1)]
        states = [set_mask(x, mask) for x in states]
        further = []
        if return_attention_scores or return_projections:
            asked = {
                "return_attention_scores": return_attention_scores,
                "return_projections": return_projections,
            }
            specs = (b.compute_output_spec(inputs, **asked) for b in self._in_order())
            further = [spec for _, *spec in specs]
        return self._outputs(self._specs(inputs.shape), states, further, return_hidden_states)
