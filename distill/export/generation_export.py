"""Export of generation models to a .tflite file with its tokenizer, for `distill.runtime`."""

import contextlib
import pathlib

from distill.compression.file_quantization import check_quantization
from distill.export.decoding_signatures import (
    generator_signatures,
    rows_by,
    translator_signatures,
)
from distill.export.metadata import (
    TensorDescription,
    add_metadata,
    tensor_names,
    text_model_metadata,
)
from distill.export.tflite import LOOKUPS, check_computes_in_float32, to_tflite
from distill.runtime.associated_files import (
    SETTINGS_FILE,
    TARGET_TOKENIZER_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    add_files,
)
from tfnlp.generation import CausalDecoder, EncoderDecoderCache, Translator
from tfnlp.generation.batched_search import find_end_token
from tfnlp.models import check_vocabulary, config_of
from tfnlp.objectives.special_token_template import Frame
from tfnlp.quantization.fake_quantization import in_float
from tfnlp.text import WordPieceTokenizer
from tfnlp.text.marian import MarianTokenizer
from tfnlp.text.text_arguments import check_whole
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import replaced_when_whole

# Defaults: lengths of prompt chunks, the most tokens of a file, and the most new tokens.
LENGTHS, MAX_LENGTH, NEW_TOKENS = (16, 64), 256, 64

NO_EXPORT = (
    "Files that write are made of a GPT, a GPT-2 or a Transformer alone; a recurrent network or a "
    "model with a memory has no export."
)
DESCRIPTIONS = {
    "ids": "Token ids.",
    "place": "The place of the first id in the caches.",
    "logits": "The logits of what comes next.",
    "keys": "The keys of a block; give the output back as the next call's input.",
    "values": "The values of a block, likewise.",
    "source": "What decoding attends to of a source, as encoding gives it.",
}


def export_generator(
    model,
    path,
    tokenizer,
    quantization="int8",
    max_length=None,
    name="language model",
    *,
    fixed_lengths=None,
    beams=4,
    max_new_tokens=None,
    end_token=None,
    credits=None,
):
    """Write a causal LM as a .tflite file that continues prompts.

    Its signatures share one set of weights, see `generator_signatures`. "prefill_16" and
    "prefill_64" read prompts, "decode" one more token, and "decode_4" one more of each of 4 beams.
    The caches are inputs and outputs. All operations are TFLite's own. The file holds the
    tokenizer, for `distill.runtime.TextGenerator`.

    Args:
        model: a GPT or a GPT-2 with the head "causal_lm".
        path: of the file.
        tokenizer: the model's.
        quantization: "float32", "float16", "int8", "int4" or "int4_block32", see `export_tflite`.
        max_length: the most tokens of a prompt and its continuation together; the model's
            positions, but at most 256, where None.
        name: of the model, in the metadata.
        fixed_lengths: lengths of the chunks in which prompts are read; 16 and 64 where None.
        beams: K of beam search; 1 for greedy search alone.
        max_new_tokens: the most new tokens of a beam search, for which the caches have places; 64,
            or `max_length` if that is less, where None.
        end_token: the token that ends a text; the document separator where None.
        credits: `distill.export.metadata.Credits`, or None.

    Raises:
        InputError: if the model has another head or family or computes in half precision, the
            tokenizer is not the model's or has no end token, lengths do not fit, or the
            quantization needs calibration.
    """
    if model.head == "causal_lm" and type(config_of(model)) not in CausalDecoder.FAMILIES:
        raise InputError(NO_EXPORT)
    decoder = CausalDecoder(model)
    quantization = _check_quantization(quantization)
    check_vocabulary(tokenizer, model)
    check_computes_in_float32(model)
    end = find_end_token(tokenizer, end_token)
    max_length = max_length or min(decoder.max_length, MAX_LENGTH)
    _check_length(max_length, decoder.max_length)
    if max_new_tokens is None:
        max_new_tokens = min(NEW_TOKENS, max_length)
    _check_beams(beams, max_new_tokens, max_length, decoder.vocabulary_size)
    lengths = _check_lengths(fixed_lengths, max_length)
    endpoints = generator_signatures(decoder, max_length, lengths, beams, max_new_tokens)
    before, after = Frame.of(tokenizer).single
    settings = {
        "model_max_length": max_length,
        "kind": "generator",
        "generation": {
            "end_token_id": end,
            "max_new_tokens": max_new_tokens,
            "framed": [len(before), len(after)],
        },
    }
    content = convert_decoder(model, endpoints, quantization)
    about = name, "Goes on from a text. Made with tfnlp.", credits
    _write(path, content, about, tokenizer.settings() | settings, _tokenizer_files(tokenizer))


def export_translator(
    model,
    path,
    tokenizer,
    target_tokenizer=None,
    quantization="int8",
    name="translator",
    *,
    fixed_lengths=None,
    beams=4,
    max_new_tokens=None,
    credits=None,
):
    """Write an encoder-decoder as a .tflite file that translates texts.

    Its signatures share one set of weights, see `translator_signatures`. "encode_16" and
    "encode_64" read sources, "decode" one more token, and "decode_4" one more of each of 4
    beams. Otherwise it is like `export_generator`, for `distill.runtime.Translator`.

    Args:
        model: a transformer with the head "sequence_to_sequence".
        path: of the file.
        tokenizer: of the sources.
        target_tokenizer: of the translations; as `tfnlp.generation.Translator` takes it.
        quantization, name, credits: as in `export_generator`.
        fixed_lengths: of sources, the longest of which is the maximum; 16 and 64 where None.
        beams: K of beam search; 1 for greedy search alone.
        max_new_tokens: the most tokens to generate; 64, or the model's positions if they are
            fewer, where None.

    Raises:
        InputError: as `export_generator`, and if one tokenizer is a `MarianTokenizer` and the
            other is not from its pair.
    """
    if max_new_tokens is None:
        max_new_tokens = min(NEW_TOKENS, config_of(model).max_length or NEW_TOKENS)
    how = {"max_new_tokens": max_new_tokens}
    keras_translator = Translator(model, tokenizer, target_tokenizer, **how)
    decoder, target_tokenizer = keras_translator.decoder, keras_translator.target_tokenizer
    _check_pair(tokenizer, target_tokenizer)
    if not isinstance(decoder, EncoderDecoderCache):
        raise InputError(NO_EXPORT)
    check_computes_in_float32(model)
    quantization = _check_quantization(quantization)
    positions = decoder.max_length or max(fixed_lengths or LENGTHS)
    lengths = _check_lengths(fixed_lengths, positions)
    _check_beams(beams, max_new_tokens, decoder.max_length, decoder.vocabulary_size)
    endpoints = translator_signatures(decoder, lengths, beams, max_new_tokens)
    before, after = Frame.of(tokenizer).single
    settings = {
        "model_max_length": max(lengths),
        "kind": "translator",
        "generation": {
            "start_token_id": decoder.start_token_id,
            "end_token_id": keras_translator.end,
            "pad_token_id": keras_translator.pad,
            "source_end_token_id": keras_translator.source_end,
            "max_new_tokens": max_new_tokens,
            "framed": [len(before), len(after)],
        },
    }
    if isinstance(tokenizer, MarianTokenizer):
        files = tokenizer.files()
    else:
        settings = tokenizer.settings() | settings
        files = _tokenizer_files(tokenizer)
        if target_tokenizer is not tokenizer:
            files |= {TARGET_TOKENIZER_FILE: target_tokenizer.to_json()}
    content = convert_decoder(model, endpoints, quantization)
    about = name, "Makes a text of another. Made with tfnlp.", credits
    _write(path, content, about, settings, files)


def convert_decoder(model, endpoints, quantization):
    """Convert a model's signatures to the bytes of a .tflite, without its tokenizer.

    Args:
        model: the owner of the weights.
        endpoints: from `generator_signatures` or `translator_signatures`.
        quantization: one of `QUANTIZATIONS`; tables of 8 and 4 bits have a scale for each row.
    """
    reading = contextlib.nullcontext()
    if quantization in LOOKUPS:
        reading = rows_by(LOOKUPS[quantization], model)
    with in_float(model), reading:
        return to_tflite(model, endpoints, quantization)


def _check_pair(tokenizer, target_tokenizer):
    """Raise an InputError for one half of a Marian's pair beside another tokenizer."""
    halves = [isinstance(each, MarianTokenizer) for each in (tokenizer, target_tokenizer)]
    whole = all(halves) and tokenizer.target.files() == target_tokenizer.files()
    if any(halves) and not whole:
        raise InputError(
            "A file holds a MarianTokenizer as the pair that it is, but tokenizer and "
            "target_tokenizer are of no one pair; give its first alone, or other tokenizers."
        )


def _tokenizer_files(tokenizer):
    if isinstance(tokenizer, WordPieceTokenizer):
        return {VOCABULARY_FILE: "\n".join(tokenizer.vocabulary)}
    return {TOKENIZER_FILE: tokenizer.to_json()}


def _write(path, content, about, settings, files):
    """Write a converted model with its metadata, settings and files."""
    name, description, credits = about
    described = [
        [TensorDescription(tensor, _described(tensor)) for tensor in tensors]
        for tensors in tensor_names(content)
    ]
    metadata = text_model_metadata(
        name, description, *described, [SETTINGS_FILE, *files], False, credits
    )
    content = add_files(add_metadata(content, metadata), settings, files)
    with replaced_when_whole(path) as temporary:
        pathlib.Path(temporary).write_bytes(content)


def _described(name):
    return next(text for key, text in DESCRIPTIONS.items() if name.startswith(key))


def _check_quantization(quantization):
    check_quantization(quantization)
    if quantization == "static_int8":
        raise InputError(
            "quantization='static_int8' is not for models that write, whose caches are no "
            "integers; use 'int8'."
        )
    return quantization


def _check_length(max_length, positions):
    check_whole(max_length=max_length)
    if not 3 <= max_length <= (positions or max_length):
        raise InputError(
            f"max_length={max_length} must lie between 3 and the model's {positions} positions."
        )


def _check_beams(beams, max_new_tokens, max_length, vocabulary_size):
    check_whole(beams=beams, max_new_tokens=max_new_tokens)
    if not 1 <= beams <= vocabulary_size // 2:
        raise InputError(
            f"beams={beams} must lie between 1 and {vocabulary_size // 2}, half of the vocabulary."
        )
    if not 1 <= max_new_tokens <= (max_length or max_new_tokens):
        raise InputError(
            f"max_new_tokens={max_new_tokens} must lie between 1 and max_length={max_length}."
        )


def _check_lengths(fixed_lengths, max_length):
    """Return the lengths of prompt or source signatures, ascending.

    Raises:
        InputError: if there is none, or one does not lie between 2 and `max_length`.
    """
    if fixed_lengths is None:
        fixed_lengths = [n for n in LENGTHS if n <= max_length] or [max_length]
    for length in fixed_lengths:
        check_whole(fixed_lengths=length)
        if not 2 <= length <= max_length:
            raise InputError(
                f"fixed_lengths={length} must lie between 2 and max_length={max_length}."
            )
    if not fixed_lengths:
        raise InputError("fixed_lengths is empty; give at least one, such as 16.")
    return sorted(set(fixed_lengths))
