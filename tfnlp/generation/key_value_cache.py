"""Decoders of transformers with a cache of keys and values."""

import abc
from typing import NamedTuple

import keras
from keras import ops

from tfnlp.generation.decoder import Decoder
from tfnlp.models import Gpt2Config, GptConfig, TransformerConfig

# The encoder's inputs, by their names in the model.
SOURCE_INPUTS = ("encoder_token_ids", "encoder_padding_mask")


class Cached(NamedTuple):
    """State of a `CausalDecoder` or an `EncoderDecoderCache` between two steps; all tensors.

    The prompt's keys come first, then those of each step's K tokens, side by side. They stay in
    place: a mask tells which of a step's tokens belongs to a text. So a beam search copies no keys
    when it replaces one text by two continuations of another, and the prompt's keys are stored
    once.

    Args:
        keys: of each block (B, N, C, H), C being P + K * steps.
        values: of each block (B, N, C, H'). Keys and values may be `Int8Cache`s instead.
        prompt_mask: (B, P) boolean, true at real tokens.
        ancestors: (B, K, steps) int32, index of each step's token that belongs to each text.
        source: in an encoder-decoder, what each block attends to: a tuple of keys (B, N, S, H) and
            values (B, N, S, H') each, and a mask (B, S), 1 at real tokens.
    """

    keys: tuple
    values: tuple
    prompt_mask: object
    ancestors: object
    source: tuple = ()


class CachedDecoder(Decoder):
    """Step-by-step decoder with cached keys and values.

    Each step computes only the new tokens (K for each prompt). It returns the model's outputs for
    the whole text, up to rounding.

    Args:
        model: from `build_model`.
        stack: the prefix of the names of the blocks that cache keys and values, such as "encoder".
        norm: the name of the norm after them, which a model may lack.
    """

    def __init__(self, model, stack, norm):
        super().__init__(model)
        self.max_length = self.config.max_length
        names = {layer.name: layer for layer in model.layers}
        self._embeddings = names["embeddings"]
        self._blocks = [names[f"{stack}_{i}"] for i in range(self.sizes.num_layers)]
        self._norms = [names[norm]] if norm in names else []
        self._output, self._bias = names.get("lm_output"), names.get("lm_bias")

    @abc.abstractmethod
    def _embed(self, token_ids, positions):
        """Return the embeddings (B, T, D) of tokens at positions (B, T)."""

    @abc.abstractmethod
    def _through(self, number, x, seen, cache, source):
        """Return the outputs of a block, its scores, and its keys and values."""

    def _begin(self, token_ids, mask, beams, steps, source=()):
        """Return the logits after the first tokens of texts, (B, P), and their `Cached`."""
        batch, length = token_ids.shape
        mask = ops.cast(mask, "bool")
        places = length + beams * steps
        attention = self._blocks[0].attention
        keys, values = (
            tuple(
                ops.zeros((batch, attention.num_heads, places, size), block.compute_dtype)
                for block in self._blocks
            )
            for size in (attention.key_dim, attention.value_dim)
        )
        ancestors = ops.zeros((batch, beams, steps), "int32")
        state = Cached(keys, values, mask, ancestors, source)
        positions = ops.maximum(ops.cumsum(ops.cast(mask, "int32"), axis=1) - 1, 0)
        order = ops.arange(length)
        seen = mask[:, None, :] & (order[None, None, :] <= order[None, :, None])  # (B, P, P)
        seen = ops.pad(seen, ((0, 0), (0, 0), (0, places - length)))
        x, state = self._read(token_ids, positions, seen, state, 0)
        return self._logits(x[:, -1:])[:, 0], state

    def step(self, token_ids, parents, number, state):
        batch, beams, steps = state.ancestors.shape
        length = state.prompt_mask.shape[1]
        ancestors = state.ancestors
        if parents is not None:
            ancestors = ops.take_along_axis(ancestors, parents[:, :, None], axis=1)
        now = ops.arange(steps) == number
        each = ops.arange(beams, dtype="int32")
        ancestors = ops.where(now, each[None, :, None], ancestors)
        seen_steps = ancestors[..., None] == each  # (B, K, steps, K)
        seen_steps = seen_steps & (ops.arange(steps) <= number)[:, None]
        seen_steps = ops.reshape(seen_steps, (batch, beams, steps * beams))
        prompt = ops.broadcast_to(state.prompt_mask[:, None, :], (batch, beams, length))
        seen = ops.concatenate([prompt, seen_steps], axis=2)  # (B, K, C)
        positions = ops.sum(ops.cast(state.prompt_mask, "int32"), axis=1)[:, None] + number
        positions = ops.broadcast_to(positions, (batch, beams))
        state = state._replace(ancestors=ancestors)
        x, state = self._read(token_ids, positions, seen, state, length + number * beams)
        return self._logits(x), state

    def _read(self, token_ids, positions, seen, state, place):
        """Return the states (B, T, D) of tokens (B, T), with keys cached from position `place`."""
        place = ops.convert_to_tensor(place, "int32")
        x = self._embed(token_ids, positions)
        keys, values = [], []
        for i in range(len(self._blocks)):
            cache = state.keys[i], state.values[i], place
            x, _, key, value, *_ = self._through(i, x, seen, cache, state.source)
            keys.append(key)
            values.append(value)
        for norm in self._norms:
            x = norm(x)
        return x, state._replace(keys=tuple(keys), values=tuple(values))

    def _logits(self, x):
        """Return the logits (B, T, V), float32, of states (B, T, D)."""
        logits = self._output(x) if self._output else self._embeddings(x, reverse=True)
        logits = self._bias(logits) if self._bias else logits
        return ops.cast(logits, "float32")


class CausalDecoder(CachedDecoder):
    """Step-by-step decoder of a GPT or a GPT-2."""

    families = (GptConfig, Gpt2Config)

    def __init__(self, model):
        super().__init__(model, "encoder", "final_norm")

    def start(self, token_ids, prompt_mask, beams, steps):
        return self._begin(token_ids, prompt_mask, beams, steps)

    def _embed(self, token_ids, positions):
        return self._embeddings(token_ids, positions=positions)

    def _through(self, number, x, seen, cache, source):
        arguments = {"cache": cache}
        options = {"attention_arguments": arguments, "return_projections": True}
        return self._blocks[number](x, attention_mask=seen, **options)


class EncoderDecoderCache(CachedDecoder):
    """Step-by-step decoder of an encoder-decoder transformer.

    The encoder and the projections for cross-attention run once per source.
    """

    families = (TransformerConfig,)
    head = "sequence_to_sequence"

    def __init__(self, model):
        super().__init__(model, "decoder", "decoder_norm")
        self.start_token_id = self.config.start_token_id
        self._positions = model.get_layer("positions")
        inputs = {name: model.input[name] for name in SOURCE_INPUTS}
        self._encoder = keras.Model(inputs, model.output["encoder_output"])

    @property
    def sizes(self):
        return self.config.decoder

    def start(self, token_ids, prompt_mask, beams, steps):
        mask = ops.cast(prompt_mask, "int32")
        source = self.encode(token_ids, mask)
        first = ops.full((token_ids.shape[0], 1), self.start_token_id, dtype="int32")
        return self._begin(first, ops.ones_like(first), beams, steps, (source, mask))

    def encode(self, token_ids, mask):
        """Return each block's cross-attention keys (B, N, S, H) and values for sources (B, S)."""
        states = self._encoder(dict(zip(SOURCE_INPUTS, (token_ids, mask), strict=True)))
        return tuple(block.cross_attention.project_source(states) for block in self._blocks)

    def _embed(self, token_ids, positions):
        return self._positions(self._embeddings(token_ids), positions=positions)

    def _through(self, number, x, seen, cache, source):
        projected, mask = source
        return self._blocks[number](
            x,
            None,
            attention_mask=seen,
            encoder_mask=mask[:, None, :],
            cache=cache,
            encoder_cache=projected[number],
            return_projections=True,
        )
