"""The decoder of any model that text comes out of."""

from tfnlp.generation.causal_decoder import CausalDecoder
from tfnlp.generation.encoder_decoder_cache import EncoderDecoderCache
from tfnlp.generation.memory_decoder import TransformerXLDecoder, XLNetDecoder
from tfnlp.generation.recurrent import RecurrentDecoder, RecurrentTranslatorDecoder
from tfnlp.models import (
    RecurrentConfig,
    RecurrentTranslatorConfig,
    TransformerConfig,
    TransformerXLConfig,
    XLNetConfig,
    config_of,
)

DECODERS = {
    TransformerConfig: EncoderDecoderCache,
    TransformerXLConfig: TransformerXLDecoder,
    XLNetConfig: XLNetDecoder,
    RecurrentConfig: RecurrentDecoder,
    RecurrentTranslatorConfig: RecurrentTranslatorDecoder,
}


def decoder_of(model):
    """What `search` takes of a model: its layers, one step at a time.

    Args:
        model: from `build_model` or `load_model`, with the head "causal_lm", "permutation_lm" or
            "sequence_to_sequence".

    Returns:
        An `EncoderDecoderCache` of a transformer, a `MemoryDecoder` of a Transformer-XL or an
        XLNet, a `CausalDecoder` of a GPT or a GPT-2; of recurrent networks a
        `RecurrentTranslatorDecoder` and a `RecurrentDecoder`.

    Raises:
        InputError: for a model that no text comes out of.
    """
    return DECODERS.get(type(config_of(model)), CausalDecoder)(model)
