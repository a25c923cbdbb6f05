"""Selection of a model's decoder for generation."""

from tfnlp.generation.causal_decoder import CausalDecoder
from tfnlp.generation.encoder_decoder import EncoderDecoderCache
from tfnlp.generation.memory_decoder import TransformerXLDecoder, XLNetDecoder
from tfnlp.generation.recurrent_decoders import RecurrentDecoder, RecurrentTranslatorDecoder
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
    """Return the step-by-step decoder of a model, for `search`.

    Args:
        model: from `build_model` or `load_model`, with the head "causal_lm", "permutation_lm" or
            "sequence_to_sequence".

    Returns:
        An `EncoderDecoderCache` for a transformer, a `MemoryDecoder` for a Transformer-XL or an
        XLNet, a `CausalDecoder` for a GPT or a GPT-2; for recurrent networks a
        `RecurrentTranslatorDecoder` or a `RecurrentDecoder`.

    Raises:
        InputError: if the model cannot generate text.
    """
    return DECODERS.get(type(config_of(model)), CausalDecoder)(model)
