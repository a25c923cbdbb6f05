"""Selection of a model's decoder for generation."""

from tfnlp.generation.key_value_cache import CausalDecoder, EncoderDecoderCache
from tfnlp.generation.memory_decoder import TransformerXLDecoder, XLNetDecoder
from tfnlp.generation.recurrent_decoders import RecurrentDecoder, RecurrentTranslatorDecoder
from tfnlp.models import config_of
from tfnlp.utils.errors import InputError

DECODERS = (
    CausalDecoder,
    EncoderDecoderCache,
    TransformerXLDecoder,
    XLNetDecoder,
    RecurrentDecoder,
    RecurrentTranslatorDecoder,
)


def decoder_of(model, translates=None):
    """Return the step-by-step decoder of a model, for `search`.

    Args:
        model: from `build_model` or `load_model`, with the head "causal_lm", "permutation_lm" or
            "sequence_to_sequence".
        translates: whether the model must be an encoder-decoder, or must not; None for any.

    Raises:
        InputError: if the model cannot generate text, or is of the other kind.
    """
    family = type(config_of(model))
    kind = next((kind for kind in DECODERS if family in kind.families), CausalDecoder)
    decoder = kind(model)
    if translates not in (None, decoder.start_token_id is not None):
        other = "Generator (recipes.generate)" if translates else "Translator (recipes.translate)"
        raise InputError(f"The model is a {model.name}, which a {other} runs; use that.")
    return decoder
