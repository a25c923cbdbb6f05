"""Step-by-step decoders of recurrent models."""

import contextlib
from typing import NamedTuple

from keras import ops

from tfnlp.generation.decoder import Decoder, by_beam, for_beams, of_parents
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
        return output_logits(self.model, x[:, -1]), for_beams(States(tuple(states)), beams)

    def step(self, token_ids, parents, number, state):
        states, new = of_parents(state.states, parents), []
        x = self._embeddings(ops.reshape(token_ids, (-1, 1)))[:, 0]
        for i, layer in enumerate(self._layers):
            x, after = layer.cell(x, list(states[i * self._count : (i + 1) * self._count]))
            new += after
        logits = output_logits(self.model, x)
        return by_beam((logits, States(tuple(new))), token_ids.shape[1])


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
        blank = ops.zeros_like(states[0])
        new, output, _ = self._decoder.step(x[:, 0], states, blank, source or None)
        kept = States(*for_beams((tuple(new), output), beams), source)
        return output_logits(self.model, output), kept

    def step(self, token_ids, parents, number, state):
        states, output = of_parents((state.states, state.output), parents)
        x = self._embeddings(ops.reshape(token_ids, (-1, 1)))[:, 0]
        new, output, _ = self._decoder.step(x, states, output, state.source or None)
        kept = output_logits(self.model, output), tuple(new), output
        logits, new, output = by_beam(kept, token_ids.shape[1])
        return logits, States(new, output, state.source)


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
