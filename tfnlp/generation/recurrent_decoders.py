"""Step-by-step decoders of recurrent models."""

import contextlib
from typing import NamedTuple

from keras import ops

from tfnlp.generation.decoder import Decoder
from tfnlp.models import RecurrentConfig, RecurrentTranslatorConfig
from tfnlp.models.recurrent_translator import decoder_inputs, output_logits


class States(NamedTuple):
    """State of a recurrent decoder between two steps; all tensors.

    Args:
        states: of each cell in turn, (B, K, D).
        output: (B, K, D), the output of a translator's decoder; () for a language model.
        source: projected source for attention, from `RecurrentDecoderBlock.prepare`; () without.
    """

    states: tuple
    output: object = ()
    source: tuple = ()


class RecurrentDecoder(Decoder):
    """Step-by-step decoder of a recurrent language model."""

    families = (RecurrentConfig,)

    def __init__(self, model):
        super().__init__(model)
        config = self.config
        self._embeddings = model.get_layer("embeddings")
        self._layers = [model.get_layer(f"forward_{i}") for i in range(config.num_layers)]
        self._count = config.memory_length

    def start(self, token_ids, prompt_mask, beams, steps):
        # Padding at the left changes no state.
        x, mask, states = self._embeddings(token_ids), ops.cast(prompt_mask, "bool"), []
        with _without_cudnn(self.model):
            for layer in self._layers:
                x, *after = layer(x, mask=mask)
                states += after
        return output_logits(self.model, x[:, -1]), States(_beams(states, beams))

    def step(self, token_ids, parents, number, state):
        batch, beams = token_ids.shape
        states = _rows(_from_parents(state.states, parents))
        x, new = self._embeddings(token_ids[:, :, None])[:, :, 0], []
        x = ops.reshape(x, (batch * beams, x.shape[-1]))
        for i, layer in enumerate(self._layers):
            x, after = layer.cell(x, list(states[i * self._count : (i + 1) * self._count]))
            new += after
        logits = ops.reshape(output_logits(self.model, x), (batch, beams, self.vocabulary_size))
        return logits, States(_by_beam(new, batch, beams))


class RecurrentTranslatorDecoder(Decoder):
    """Step-by-step decoder of a recurrent encoder-decoder; prompts are source texts.

    The encoder and the attention's source projection run once per source.
    """

    families = (RecurrentTranslatorConfig,)
    head = "sequence_to_sequence"

    def __init__(self, model):
        super().__init__(model)
        self.start_token_id = self.config.start_token_id
        self._embeddings, self._decoder = model.get_layer("embeddings"), model.get_layer("decoder")
        self._encode = decoder_inputs(model)

    def start(self, token_ids, prompt_mask, beams, steps):
        batch = token_ids.shape[0]
        first = ops.full((batch, 1), self.start_token_id, "int32")
        inputs = {
            "encoder_token_ids": token_ids,
            "encoder_padding_mask": ops.cast(prompt_mask, "int32"),
            "decoder_token_ids": first,
        }
        with _without_cudnn(self.model):
            x, initial, *value = self._encode(inputs, training=False)
        source = self._decoder.prepare(*value, prompt_mask) if value else ()
        layers, count = initial.shape[1:3]
        states = tuple(initial[:, i, k] for i in range(layers) for k in range(count))
        new, output, _ = self._decoder.step(
            x[:, 0], states, ops.zeros_like(states[0]), source or None
        )
        kept = States(_beams(new, beams), _beams([output], beams)[0], source)
        return output_logits(self.model, output), kept

    def step(self, token_ids, parents, number, state):
        batch, beams = token_ids.shape
        *states, output = _rows(_from_parents((*state.states, state.output), parents))
        x = ops.reshape(self._embeddings(token_ids), (batch * beams, -1))
        new, output, _ = self._decoder.step(x, tuple(states), output, state.source or None)
        logits = ops.reshape(output_logits(self.model, output), (batch, beams, -1))
        *new, output = _by_beam((*new, output), batch, beams)
        return logits, States(tuple(new), output, state.source)


@contextlib.contextmanager
def _without_cudnn(model):
    """Disable cuDNN temporarily: it does not support padding at the left or XLA."""
    layers = [layer for layer in model.layers if hasattr(layer, "use_cudnn")]
    before = [layer.use_cudnn for layer in layers]
    for layer in layers:
        layer.use_cudnn = False
    try:
        yield
    finally:
        for layer, value in zip(layers, before, strict=True):
            layer.use_cudnn = value


def _beams(states, beams):
    """Return states (B, D) repeated for K texts, (B, K, D)."""
    return tuple(ops.repeat(x[:, None], beams, axis=1) for x in states)


def _from_parents(states, parents):
    """Return the states (B, K, D) of the texts that each text continues."""
    if parents is None:
        return states
    return tuple(ops.take_along_axis(x, parents[:, :, None], axis=1) for x in states)


def _rows(states):
    """Return states (B, K, D) as (B * K, D)."""
    return tuple(ops.reshape(x, (-1, x.shape[-1])) for x in states)


def _by_beam(states, batch, beams):
    """Return states (B * K, D) as (B, K, D)."""
    return tuple(ops.reshape(x, (batch, beams, x.shape[-1])) for x in states)
