"""Transformer decoder with cached keys and values, also of the encoder."""

import keras
from keras import ops

from tfnlp.generation.key_value_cache import CachedDecoder
from tfnlp.models import TransformerConfig, config_of
from tfnlp.utils.errors import InputError

# The encoder's inputs, by their names in the model.
SOURCE_INPUTS = ("encoder_token_ids", "encoder_padding_mask")


class EncoderDecoderCache(CachedDecoder):
    """Step-by-step decoder of an encoder-decoder transformer, with the model's layers and weights.

    The encoder and the projections for cross-attention run once per source.

    Args:
        model: a transformer with the head "sequence_to_sequence", from `build_model` or
            `load_model`.

    Raises:
        InputError: if the model has another head or family.
    """

    FAMILIES = (TransformerConfig,)

    def __init__(self, model):
        config = config_of(model)
        if model.head != "sequence_to_sequence" or type(config) not in self.FAMILIES:
            held = f"the head {model.head!r}" if model.head else "no head"
            raise InputError(
                "Text is made of another by a transformer with the head 'sequence_to_sequence', "
                f"but the model is a {model.name} with {held}; give an encoder-decoder."
            )
        sizes = config.decoder
        blocks = [model.get_layer(f"decoder_{i}") for i in range(sizes.num_layers)]
        super().__init__(model, blocks, "decoder_norm")
        self.vocabulary_size = sizes.vocabulary_size
        self.start_token_id = config.start_token_id
        self._positions = model.get_layer("positions")
        inputs = {name: model.input[name] for name in SOURCE_INPUTS}
        self._encoder = keras.Model(inputs, model.output["encoder_output"])

    def start(self, token_ids, prompt_mask, beams, steps):
        """Process sources and the start token of each text.

        Args:
            token_ids: (B, S) integers, padded at the right.
            prompt_mask: (B, S), 1 or true at real tokens, at least one in each row.
            beams: K, the texts of each source.
            steps: the most tokens of each text.

        Returns:
            The logits of the first token, (B, V) float32, and a `Cached`.
        """
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

    def _through(self, block, x, seen, cache, source, number):
        projected, mask = source
        return block(
            x,
            None,
            attention_mask=seen,
            encoder_mask=mask[:, None, :],
            cache=cache,
            encoder_cache=projected[number],
            return_projections=True,
        )
