"""Export of generation models to a .tflite file with its tokenizer, for `distill.runtime`."""

import pathlib

from distill.compression.file_quantization import check_quantization
from distill.export.conversion import check_computes_in_float32, to_tflite
from distill.export.generation_signatures import generator_signatures, translator_signatures
from distill.export.length_signatures import check_range
from distill.export.metadata import complete_file, tokenizer_files
from distill.export.options import DecoderExport
from distill.runtime.associated_files import TARGET_TOKENIZER_FILE
from tfnlp.generation import CausalDecoder, EncoderDecoderCache, Translator
from tfnlp.generation.batched_search import find_end_tokens
from tfnlp.models import check_vocabulary, config_of
from tfnlp.quantization.fake_quantization import in_float
from tfnlp.tasks.kinds import GENERATOR, TRANSLATOR
from tfnlp.text.tokenizers.marian import MarianTokenizer
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace

# Defaults: lengths of prompt chunks, the most tokens of a file, and the most new tokens.
LENGTHS, MAX_LENGTH, NEW_TOKENS = (16, 64), 256, 64
DESCRIPTIONS = {
    "ids": "Token ids.",
    "place": "The place of the first id in the caches.",
    "logits": "The logits of the next token.",
    "keys_scales": "Factors of the keys of a block, which are integers; given back likewise.",
    "values_scales": "Factors of the values of a block, likewise.",
    "keys": "The keys of a block; give the output back as the next call's input.",
    "values": "The values of a block, likewise.",
    "source": "The encoded source that decoding attends to.",
}


def export_generator(model, path, tokenizer, options=None):
    """Write a causal LM as a .tflite file that continues prompts.

    Its signatures share one set of weights, see `generator_signatures`. "prefill_16" and
    "prefill_64" read prompts, "decode" one more token, and "decode_4" one more of each of 4 beams.
    The caches are inputs and outputs. All operations are TFLite's own. The file holds the
    tokenizer, for `distill.runtime.TextGenerator`.

    Args:
        model: a GPT or a GPT-2 with the head "causal_lm".
        path: of the file.
        tokenizer: the model's.
        options: `DecoderExport`; its defaults where None.

    Raises:
        InputError: if the model has another head or family or computes in half precision, the
            tokenizer is not the model's or has no end token, lengths do not fit, or the
            quantization needs calibration.
    """
    options = options or DecoderExport()
    decoder, ends, max_length, lengths = check_causal_lm(model, tokenizer, options)
    max_new_tokens = options.max_new_tokens
    if max_new_tokens is None:
        max_new_tokens = min(NEW_TOKENS, max_length)
    check_range(1, max_length, max_new_tokens=max_new_tokens)
    check_range(1, decoder.vocabulary_size // 2, beams=options.beams)
    sizes = {"beams": options.beams, "max_new_tokens": max_new_tokens}
    sizes["cache_type"] = options.cache_type
    endpoints = generator_signatures(decoder, max_length, lengths, **sizes)
    settings = tokenizer.settings() | {"model_max_length": max_length, "kind": GENERATOR.name}
    settings["generation"] = {
        "end_token_id": ends[0] if len(ends) == 1 else ends,
        "max_new_tokens": max_new_tokens,
    }
    associated = {"settings": settings, "files": tokenizer_files(tokenizer)}
    description = "Continues a text. Made with tfnlp."
    _write(path, model, endpoints, options, description=description, **associated)


def export_translator(model, path, tokenizer, target_tokenizer=None, options=None):
    """Write an encoder-decoder as a .tflite file that translates texts.

    Its signatures share one set of weights, see `translator_signatures`. "encode_16" and
    "encode_64" read sources, "decode" one more token, and "decode_4" one more of each of 4
    beams. Otherwise it is like `export_generator`, for `distill.runtime.Translator`.

    Args:
        model: a transformer with the head "sequence_to_sequence".
        path: of the file.
        tokenizer: of the sources.
        target_tokenizer: of the translations; as `tfnlp.generation.Translator` takes it.
        options: `DecoderExport`, without a `max_length` and an `end_token`; its defaults where
            None.

    Raises:
        InputError: as `export_generator`, and if one tokenizer is a `MarianTokenizer` and the
            other is not from its pair.
    """
    options = options or DecoderExport(name=TRANSLATOR.name)
    max_new_tokens = options.max_new_tokens
    if max_new_tokens is None:
        max_new_tokens = min(NEW_TOKENS, config_of(model).max_length or NEW_TOKENS)
    translator = Translator(model, tokenizer, target_tokenizer, max_new_tokens=max_new_tokens)
    decoder, target_tokenizer = translator.decoder, translator.target_tokenizer
    if not isinstance(decoder, EncoderDecoderCache):
        raise InputError("A recurrent translator has no export; only a transformer has.")
    _check_pair(tokenizer, target_tokenizer)
    _check_model(model, options.quantization)
    lengths = options.fixed_lengths or LENGTHS
    lengths = _lengths(options.fixed_lengths, decoder.max_length or max(lengths))
    check_range(1, decoder.vocabulary_size // 2, beams=options.beams)
    sizes = {"beams": options.beams, "max_new_tokens": max_new_tokens}
    sizes["cache_type"] = options.cache_type
    endpoints = translator_signatures(decoder, lengths, **sizes)
    settings = {"model_max_length": max(lengths), "kind": TRANSLATOR.name}
    settings["generation"] = {
        "start_token_id": decoder.start_token_id,
        "end_token_id": translator.settings.ends[0],
        "pad_token_id": translator.settings.pad,
        "source_end_token_id": translator.source_end,
        "max_new_tokens": max_new_tokens,
    }
    if isinstance(tokenizer, MarianTokenizer):
        files = tokenizer.files()
    else:
        settings = tokenizer.settings() | settings
        files = tokenizer_files(tokenizer)
        if target_tokenizer is not tokenizer:
            files |= {TARGET_TOKENIZER_FILE: target_tokenizer.to_json()}
    associated = {"settings": settings, "files": files}
    description = "Translates a text. Made with tfnlp."
    _write(path, model, endpoints, options, description=description, **associated)


def check_causal_lm(model, tokenizer, options):
    """Return a causal LM's decoder, end tokens, maximum length and lengths of prompt chunks.

    Raises:
        InputError: for a model or options that a file cannot have, see `export_generator`.
    """
    decoder = CausalDecoder(model)
    _check_model(model, options.quantization)
    check_vocabulary(tokenizer, model)
    ends = find_end_tokens(tokenizer, options.end_token)
    max_length = options.max_length or min(decoder.max_length, MAX_LENGTH)
    check_range(3, decoder.max_length or max_length, max_length=max_length)
    return decoder, ends, max_length, _lengths(options.fixed_lengths, max_length)


def _check_pair(tokenizer, target_tokenizer):
    """Raise an InputError for one half of a Marian's pair beside another tokenizer."""
    halves = [isinstance(each, MarianTokenizer) for each in (tokenizer, target_tokenizer)]
    pair = all(halves) and tokenizer.target.files() == target_tokenizer.files()
    if any(halves) and not pair:
        raise InputError(
            "A file holds a MarianTokenizer together with its target, but tokenizer and "
            "target_tokenizer are not such a pair; give the first alone, or other tokenizers."
        )


def _write(path, model, endpoints, options, **metadata):
    with in_float(model):
        content = to_tflite(model, endpoints, options.quantization)
    content = complete_file(content, options, descriptions=DESCRIPTIONS, **metadata)
    with atomic_replace(path) as temporary:
        pathlib.Path(temporary).write_bytes(content)


def _check_model(model, quantization):
    check_computes_in_float32(model)
    check_quantization(quantization)
    if quantization == "static_int8":
        raise InputError(
            "quantization='static_int8' is not for models that generate, whose caches are no "
            "integers; use 'int8'."
        )


def _lengths(fixed_lengths, max_length):
    """Return the lengths of prompt or source signatures, ascending; all from 2 to `max_length`."""
    lengths = fixed_lengths or [n for n in LENGTHS if n <= max_length] or [max_length]
    for length in lengths:
        check_range(2, max_length, fixed_lengths=length)
    return sorted(set(lengths))
