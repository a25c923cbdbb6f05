"""One transformer encoder block."""

import functools

import keras

from tfnlp.functional.recompute import recomputable
from tfnlp.layers.blocks.base_block import BaseBlock
from tfnlp.layers.core.base_layer import check_shared, check_states, serialize_shared

SUBLAYERS = ("attention", "feed_forward")


@keras.saving.register_keras_serializable("tfnlp")
class EncoderBlock(BaseBlock):
    """Self-attention and feed-forward, each with a residual and a layer norm.

    Post-norm, `norm(x + f(x))`, as Vaswani et al. 2017 (section 3.1) and BERT have it, or
    pre-norm, `x + f(norm(x))`, as GPT-2 has it (Xiong et al. 2020, figure 1).

    Args:
        num_heads: N; must divide the input width D where there is no `key_dim`.
        intermediate_dim: F, the inner width of the feed-forward network.
        activation: of the feed-forward network; "gelu" is exact.
        dropout: applied to the sub-layers' outputs in training.
        attention_dropout: applied to the attention weights in training.
        norm_first: pre-norm where true.
        layer_norm_epsilon: added to the variance.
        kernel_initializer: for every kernel.
        attention: the attention layer, such as a `DisentangledAttention` of `num_heads`;
            multi-head attention if None.
        feed_forward_dropout: applied between the two layers of the feed-forward network.
        output_initializer: for the kernels that write to the residual stream, which GPT-2
            starts smaller; `kernel_initializer` if None.
        dropout_after: the sub-layers that `dropout` is for; one alone in some families.
        block_size, key_dim: of the attention, as `MultiHeadAttention` takes them; `key_dim`
            is D / N if None.
        shared_parts: a dict of the layers that `share` gave to two blocks, as they are loaded.
        kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint,
            bias_initializer: for the kernels and biases of the feed-forward network and of the
            attention, unless `attention` is passed.

    Call arguments:
        inputs: (B, L, D).
        attention_mask: (B, T, S), (B, 1, S), (T, S) or (B, N, T, S), true where T may see S.
        use_causal_mask: hide every position after the query's own.
        return_attention_scores: also return the scores before the softmax.
        attention_arguments: a dict of further tensors that `attention` takes, passed on as
            they are; with `norm_first` those that it names in `STATES` are normalised before.
        value: (B, S, D), the states to attend to; the inputs if None.
        return_projections: also return the attention's query (B, N, L, H), key (B, N, S, H) and
            value (B, N, S, H).

    Returns:
        (B, L, D), or a tuple of it, the scores, (B, N, L, S), and the projections, as asked for.

    Raises:
        ValueError: for a sub-layer of another name, and an `attention` of other heads; at build,
            if D is no multiple of `num_heads`.
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
        attention=None,
        feed_forward_dropout=0.0,
        output_initializer=None,
        dropout_after=SUBLAYERS,
        shared_parts=None,
        *,
        block_size=None,
        **kwargs,
    ):
        unknown = set(dropout_after) - set(SUBLAYERS)
        if unknown:
            raise ValueError(
                f"dropout_after={tuple(dropout_after)} has {sorted(unknown)}; choose from "
                f"{SUBLAYERS}."
            )
        if attention is not None:
            _check_attention(attention, num_heads, attention_dropout, block_size)
            block_size = getattr(attention, "block_size", None)
        super().__init__(
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            activation=activation,
            dropout=dropout,
            attention_dropout=attention_dropout,
            norm_first=norm_first,
            layer_norm_epsilon=layer_norm_epsilon,
            kernel_initializer=kernel_initializer,
            block_size=block_size,
            **kwargs,
        )
        self.output_initializer = keras.initializers.get(output_initializer)
        self.feed_forward_dropout = feed_forward_dropout
        parts = shared_parts or {}
        self.shared_parts = list(parts)
        self.given_attention = self.attention = attention
        self.feed_forward = parts.get("feed_forward") or self._feed_forward(
            dropout=feed_forward_dropout, output_initializer=self._output_initializer()
        )
        self.attention_norm, self.feed_forward_norm = (
            parts.get(f"{name}_norm") or self._norm(f"{name}_norm") for name in SUBLAYERS
        )
        self.dropout_after = tuple(dropout_after)
        self.attention_dropout_layer, self.feed_forward_dropout_layer = (
            keras.layers.Dropout(
                dropout if name in dropout_after else 0.0, dtype=self.dtype_policy
            )
            for name in SUBLAYERS
        )
        if attention is None:
            self.attention = parts.get("attention")

    def _output_initializer(self):
        return self.output_initializer and self.output_initializer.clone()

    def build(self, inputs_shape, attention_arguments_shape=None, value_shape=None):
        check_states(inputs=inputs_shape, value=value_shape)
        if self.attention is None:
            output_initializer = self._output_initializer()
            self.attention = self._attention(
                inputs_shape[-1], output_initializer=output_initializer
            )
        if not self.attention.built:  # a part of another block is built already
            shapes = {"value": value_shape} if value_shape else {}
            shapes |= attention_arguments_shape or {}
            self.attention.build(inputs_shape, **{f"{k}_shape": v for k, v in shapes.items()})
        for part in (self.feed_forward, self.attention_norm, self.feed_forward_norm):
            if not part.built:
                part.build(inputs_shape)

    def share(self, block, part):
        """Share the "attention" or "feed_forward" of another block, and its layer norm.

        Call this before this block is built, after the other is. A saved model keeps it.

        Raises:
            ValueError: if the other block is not built yet, or this one is.
        """
        if self.built or not block.built:
            raise ValueError(
                f"{self.name} cannot share the {part} of {block.name}: build {block.name} first, "
                f"and {self.name} after share()."
            )
        for name in (part, f"{part}_norm"):
            unbuilt = getattr(self, name)
            if unbuilt is not None:
                self._tracker.untrack(unbuilt)  # else Keras quantises it
            setattr(self, name, getattr(block, name))
            for owner in (self, block):
                owner.shared_parts = sorted({*owner.shared_parts, name})
        if part == "attention":
            self.num_heads, self.attention_dropout = block.num_heads, block.attention_dropout
            self.block_size = block.block_size
        if self.given_attention is not None:
            self.given_attention = self.attention

    @recomputable
    def call(
        self,
        inputs,
        attention_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        attention_arguments=None,
        value=None,
        training=None,
        mask=None,
        inputs_mask=None,
        value_mask=None,
        return_projections=False,
    ):
        check_states(inputs=inputs.shape, value=getattr(value, "shape", None))
        # Keras passes a mask on as `mask` beside one tensor, as `inputs_mask` beside several.
        optional = {"mask": inputs_mask if mask is None else mask, "value_mask": value_mask}
        if value is not None:
            optional["value"] = self._before("attention", value)
        states = getattr(self.attention, "STATES", ())
        arguments = {
            name: self._before("attention", x) if name in states and x is not None else x
            for name, x in (attention_arguments or {}).items()
        }
        # Not every attention takes these, so they are passed on only if present.
        arguments |= {name: x for name, x in optional.items() if x is not None}
        if use_causal_mask:
            arguments["use_causal_mask"] = True
        if return_projections:
            arguments["return_projections"] = True
        attended = self.attention(
            self._before("attention", inputs),
            attention_mask=attention_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            **arguments,
        )
        if not (return_attention_scores or return_projections):
            return self._rest(inputs, attended, training)
        attended, *further = attended
        return self._rest(inputs, attended, training), *further

    def _rest(self, inputs, attended, training):
        """Return the block's output, from its inputs and its attention's output `attended`."""
        x = self._after("attention", inputs, attended, training)
        feed_forward = functools.partial(self.feed_forward, training=training)
        return self._residual("feed_forward", feed_forward, x, training)

    def compute_output_spec(
        self,
        inputs,
        attention_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        attention_arguments=None,
        value=None,
        return_projections=False,
        **kwargs,
    ):
        output = self._specs(inputs.shape)
        if not (return_attention_scores or return_projections):
            return output
        arguments = (attention_arguments or {}) | ({} if value is None else {"value": value})
        if return_projections:
            arguments["return_projections"] = True
        _, *further = self.attention.compute_output_spec(
            inputs, return_attention_scores=return_attention_scores, **arguments
        )
        return output, *further

    def fields(self):
        return super().fields() | {"attention": self.given_attention}

    def get_config(self):
        parts = {name: serialize_shared(getattr(self, name)) for name in self.shared_parts}
        return super().get_config() | {"shared_parts": parts}

    @classmethod
    def from_config(cls, config):
        parts = config["shared_parts"]
        for name, part in parts.items():
            check_shared(part, f"{config['name']} shares its {name} with another block")
        parts = {name: _deserialized(part) for name, part in parts.items()}
        attention = config["attention"]
        if attention:
            attention = parts.get("attention") or _deserialized(attention)
        return super().from_config(config | {"attention": attention, "shared_parts": parts})


def _deserialized(part):
    # Not built here: the paths of its weights would lack the block's name.
    return keras.saving.deserialize_keras_object(
        {key: value for key, value in part.items() if key != "build_config"}
    )


def _check_attention(attention, num_heads, attention_dropout, block_size):
    """Raise a ValueError if the block's arguments contradict those of its attention."""
    heads = getattr(attention, "num_heads", num_heads)
    dropout = getattr(attention, "dropout", attention_dropout)
    size = getattr(attention, "block_size", None)
    if num_heads != heads or attention_dropout not in (0, dropout):
        raise ValueError(
            f"num_heads={num_heads} and attention_dropout={attention_dropout} do not fit the "
            f"given attention, which has {heads} heads and a dropout of {dropout}; give both the "
            "same."
        )
    if block_size not in (None, size):
        raise ValueError(
            f"block_size={block_size} does not fit the given attention, which has "
            f"block_size={size}; give it to the attention alone."
        )
