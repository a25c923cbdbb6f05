"""Encoder blocks that share weights across layers (ALBERT)."""

from typing import Unpack

import keras

from tfnlp.functional.masks import set_mask
from tfnlp.functional.shapes import check_sizes
from tfnlp.layers.blocks.base_block import BaseBlock, BlockOptions, output_and_rest
from tfnlp.layers.blocks.encoder_block import SUBLAYERS, EncoderBlock
from tfnlp.layers.core.base_layer import check_choice, check_states

SHARING = ("all", "attention", "feed_forward", "none")


@keras.saving.register_keras_serializable("tfnlp")
class SharedEncoder(BaseBlock):
    """Several encoder blocks over fewer weights.

    Lan et al. 2020, 'ALBERT', section 3.1 (cross-layer parameter sharing) and table 4 (all,
    attention only, feed-forward only). Each part is shared with its layer norm.

    Args: those of `BaseBlock`, and
        num_layers: the number of blocks that an input goes through.
        sharing: "all", "attention", "feed_forward" or "none": the shared part of a group.
        num_groups: groups of consecutive layers that share; layer i is of group
            `i * num_groups // num_layers`.
        dropout_after: as in `EncoderBlock`.

    Call arguments:
        inputs: (B, L, D).
        attention_mask, use_causal_mask: as in `MultiHeadAttention`.
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
        *,
        activation="gelu",
        layer_norm_epsilon=1e-12,
        dropout_after=SUBLAYERS,
        **kwargs: Unpack[BlockOptions],
    ):
        super().__init__(
            num_heads,
            intermediate_dim,
            activation,
            layer_norm_epsilon=layer_norm_epsilon,
            **kwargs,
        )
        self.num_layers = num_layers
        self.sharing = sharing
        self.num_groups = num_groups
        check_choice("sharing", sharing, SHARING)
        check_sizes(num_layers=num_layers, num_groups=num_groups)
        if num_layers % num_groups:
            raise ValueError(f"num_groups={num_groups} must divide num_layers={num_layers}.")
        self.dropout_after = tuple(dropout_after)
        count = num_groups if sharing == "all" else num_layers
        names = ("num_layers", "sharing", "num_groups")
        arguments = {name: x for name, x in self.fields().items() if name not in names}
        self.blocks = [
            EncoderBlock(**arguments, dtype=self.dtype_policy, name=f"block_{i}")
            for i in range(count)
        ]

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
        return_attention_scores=False,
        return_projections=False,
        training=None,
        *,
        return_hidden_states=False,
        mask=None,
        inputs_mask=None,
    ):
        options = {
            "attention_mask": attention_mask,
            "use_causal_mask": use_causal_mask,
            "return_attention_scores": return_attention_scores,
            "return_projections": return_projections,
            "training": training,
            "mask": inputs_mask if mask is None else mask,
        }
        x, states, further = inputs, [inputs], []
        for block in self._in_order():
            x, of_block = output_and_rest(block(x, **options))
            further.append(of_block)
            states.append(x)
        return self._outputs(x, states, further, return_hidden_states)

    def _outputs(self, x, states, further, return_hidden_states):
        """Return x, hidden states if asked for, and `further`, regrouped from layers to kinds."""
        by_kind = [list(kind) for kind in zip(*further, strict=True)]
        extra = [states] * bool(return_hidden_states) + by_kind
        return (x, *extra) if extra else x

    def compute_output_spec(self, inputs, *masks, return_hidden_states=False, **options):
        mask = options.get("mask")
        mask = options.get("inputs_mask") if mask is None else mask
        states = [self._specs(inputs.shape) for _ in range(self.num_layers + 1)]
        states = [set_mask(x, mask) for x in states]
        specs = (block.compute_output_spec(inputs, **options) for block in self._in_order())
        further = [output_and_rest(spec)[1] for spec in specs]
        return self._outputs(self._specs(inputs.shape), states, further, return_hidden_states)
