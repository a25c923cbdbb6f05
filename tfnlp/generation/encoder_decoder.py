"""Transformer decoder with cached keys and values, also of the encoder."""

import keras
from keras import ops

from tfnlp.generation.key_value_cache import CachedDecoder
from tfnlp.models import TransformerConfig

# The encoder's inputs, by their names in the model.
SOURCE_INPUTS = ("encoder_token_ids", "encoder_padding_mask")


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
