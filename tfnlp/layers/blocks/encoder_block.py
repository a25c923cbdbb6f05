"""One transformer encoder block."""

import inspect
from typing import Unpack

import keras

from tfnlp.functional.recompute import recomputable
from tfnlp.layers.blocks.base_block import BaseBlock, BlockOptions, output_and_rest
from tfnlp.layers.core.base_layer import (
    VARIADIC,
    check_choices,
    check_layer,
    check_shared,
    check_states,
    deserialize,
    serialize_shared,
)

SUBLAYERS = ("attention", "feed_forward")


@keras.saving.register_keras_serializable("tfnlp")
class EncoderBlock(BaseBlock):
    """Self-attention and feed-forward, each with a residual and a layer norm.

    Post-norm, `norm(x + f(x))`, as Vaswani et al. 2017 (section 3.1) and BERT have it, or
    pre-norm, `x + f(norm(x))`, as GPT-2 has it (Xiong et al. 2020, figure 1).

    Args: those of `BaseBlock`, and
        attention: the attention layer, such as a `DisentangledAttention` of `num_heads`;
            multi-head attention if None. Options of kernels and biases are not for it.
        feed_forward: the layer in place of a `FeedForward` of `intermediate_dim`, (B, L, D) to
            (B, L, D), of this block alone (see `share`). Options of kernels, biases and dropout
            are not for it.
        norm: a layer of which each sub-layer has a new copy as its norm, such as a
            `keras.layers.RMSNormalization`; `LayerNormalization` if None.
        normalized: the sub-layers that have a norm; one alone in ModernBERT's first block.
        feed_forward_dropout: applied between the two layers of the feed-forward network.
        output_initializer: for the kernels that write to the residual stream, which GPT-2
            starts smaller; `kernel_initializer` if None.
        dropout_after: the sub-layers that `dropout` is for; one alone in some families.
        shared_parts: a dict of the layers that `share` gave to two blocks, as they are loaded.

    Call arguments:
        inputs: (B, L, D).
        attention_mask, use_causal_mask, return_attention_scores, return_projections: as in
            `MultiHeadAttention`.
        attention_arguments: a dict of further tensors that `attention` takes, passed on as
            they are; with `norm_first` those that it names in `STATES` are normalised before.
        value: (B, S, D), the states to attend to; the inputs if None.

    Returns:
        (B, L, D), or a tuple of it, the scores, (B, N, L, S), and the projections, as asked for.

    Raises:
        ValueError: for a sub-layer of another name, a part that is no layer, and an `attention`
            of other heads; at build, if D is no multiple of `num_heads`, and for a
            `feed_forward` of another width.
    """

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        activation="gelu",
        *,
        layer_norm_epsilon=1e-12,
        attention=None,
        feed_forward=None,
        norm=None,
        normalized=SUBLAYERS,
        feed_forward_dropout=0.0,
        output_initializer=None,
        dropout_after=SUBLAYERS,
        shared_parts=None,
        **kwargs: Unpack[BlockOptions],
    ):
        super().__init__(
            num_heads,
            intermediate_dim,
            activation,
            layer_norm_epsilon=layer_norm_epsilon,
            **kwargs,
        )
        check_layer("attention", attention, "DisentangledAttention(12, 64)")
        check_layer("feed_forward", feed_forward, "FeedForward(3072, gated=True)")
        check_layer("norm", norm, "keras.layers.RMSNormalization()")
        check_choices("dropout_after", dropout_after, SUBLAYERS)
        check_choices("normalized", normalized, SUBLAYERS)
        if attention is not None:
            _check_attention(self, attention)
            self.block_size = getattr(attention, "block_size", None)
        self.attention = attention
        self.norm = norm and keras.saving.serialize_keras_object(norm)
        self.normalized, self.dropout_after = tuple(normalized), tuple(dropout_after)
        self.feed_forward_dropout = feed_forward_dropout
        self.output_initializer = keras.initializers.get(output_initializer)
        parts = shared_parts or {}
        self.shared_parts = [*parts]
        self.given_attention, self.given_feed_forward = attention, feed_forward
        feed_forward = parts.get("feed_forward") or feed_forward
        self.feed_forward = feed_forward or self._feed_forward(
            dropout=feed_forward_dropout, output_initializer=self._output_initializer()
        )
        self.attention_norm, self.feed_forward_norm = (
            parts.get(f"{name}_norm") or self._norm(f"{name}_norm") for name in SUBLAYERS
        )
        rates = (self.dropout if name in dropout_after else 0.0 for name in SUBLAYERS)
        self.attention_dropout_layer, self.feed_forward_dropout_layer = map(
            self._dropout_layer, rates
        )
        if attention is None:
            self.attention = parts.get("attention")

    def _norm(self, name):
        if name.removesuffix("_norm") not in self.normalized:
            return keras.layers.Activation("linear", dtype=self.dtype_policy, name=name)
        if self.norm is None:
            return super()._norm(name)
        policy = keras.dtype_policies.serialize(self.dtype_policy)
        config = self.norm["config"] | {"name": name, "dtype": policy}
        norm = keras.saving.deserialize_keras_object(self.norm | {"config": config})
        norm.supports_masking = True  # of positions, which it leaves where they are
        return norm

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
        width = self.feed_forward.compute_output_shape(inputs_shape)[-1]
        if width != inputs_shape[-1]:
            raise ValueError(
                f"feed_forward has the width {width}, but must have that of the inputs, "
                f"{inputs_shape[-1]}."
            )

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
        return_projections=False,
        value_mask=None,
        *,
        attention_arguments=None,
        value=None,
        training=None,
        mask=None,
        inputs_mask=None,
    ):
        arguments = dict(attention_arguments or {})
        for name in getattr(self.attention, "STATES", ()):
            if arguments.get(name) is not None:
                arguments[name] = self._before("attention", arguments[name])
        # Keras passes a mask on as `mask` beside one tensor, as `inputs_mask` beside several.
        arguments["mask"] = inputs_mask if mask is None else mask
        if value is not None:
            arguments["value"] = self._before("attention", value)
        arguments |= {
            "use_causal_mask": use_causal_mask,
            "return_attention_scores": return_attention_scores,
            "return_projections": return_projections,
            "value_mask": value_mask,
        }
        # Not every attention takes these, so they are passed on only if present.
        arguments = {k: x for k, x in arguments.items() if x is not None and x is not False}
        attended = self.attention(
            self._before("attention", inputs),
            attention_mask=attention_mask,
            training=training,
            **arguments,
        )
        attended, further = output_and_rest(attended)
        output = self._rest(inputs, attended, training)
        return (output, *further) if further else output

    def _rest(self, inputs, attended, training):
        """Return the block's output, from its inputs and its attention's output `attended`."""
        return self._fed_forward(self._after("attention", inputs, attended, training), training)

    def compute_output_spec(self, inputs, *mask, attention_arguments=None, **options):
        output = self._specs(inputs.shape)
        if not (options.get("return_attention_scores") or options.get("return_projections")):
            return output
        spec = self.attention.compute_output_spec(inputs, **(attention_arguments or {}), **options)
        return (output, *spec[1:])

    def fields(self):
        return super().fields() | {
            "attention": self.given_attention,
            "feed_forward": self.given_feed_forward,
        }

    def get_config(self):
        parts = {name: serialize_shared(getattr(self, name)) for name in self.shared_parts}
        return super().get_config() | {"shared_parts": parts}

    @classmethod
    def from_config(cls, config):
        parts = config.get("shared_parts") or {}
        for name, part in parts.items():
            check_shared(part, f"{config['name']} shares its {name} with another block")
        parts = {name: deserialize(part) for name, part in parts.items()}
        return super().from_config(config | {"shared_parts": parts})


def _check_attention(block, attention):
    """Raise a ValueError for an attention of two inputs, or of other sizes than the block's."""
    arguments = inspect.signature(attention.call).parameters.values()
    arguments = (x for x in arguments if x.kind not in VARIADIC)
    needed = [argument.name for argument in arguments if argument.default is argument.empty]
    if len(needed) > 1:
        raise ValueError(
            f"attention={attention.name!r} needs {' and '.join(needed)}, and a block has one "
            "input for all; take an attention of tfnlp.layers: for Keras' MultiHeadAttention "
            "that of MultiHeadAttention.from_keras(layer)."
        )
    for name in ("num_heads", "key_dim", "attention_dropout", "block_size"):
        value, theirs = getattr(block, name), name.removeprefix("attention_")
        due = getattr(attention, theirs, value)
        if value not in (None, 0, due):
            raise ValueError(
                f"{name}={value} does not fit the given attention, which has {theirs}={due}."
            )
