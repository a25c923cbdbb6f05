"""A model that writes as one .tflite file, tokenizer inside, for `distill.runtime`."""

import pathlib

from distill.compression.quantization import check_quantization
from distill.device.associated_files import (
    SETTINGS_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    add_files,
)
from distill.device.decoding_signatures import generator_signatures, with_lookup
from distill.device.metadata import (
    TensorDescription,
    add_metadata,
    tensor_names,
    text_model_metadata,
)
from distill.device.tflite import LOOKUPS, to_tflite
from tfnlp.errors import InputError
from tfnlp.files import replaced_when_whole
from tfnlp.generation import CausalDecoder
from tfnlp.generation.generate import find_end_token
from tfnlp.layers.core.fake_quantization import in_float
from tfnlp.models import check_vocabulary
from tfnlp.objectives.frame import Frame
from tfnlp.text import WordPieceTokenizer
from tfnlp.text.texts import check_whole

# Lengths that prompts are read in, and the most tokens of a file, where none are given.
LENGTHS, MAX_LENGTH = (16, 64), 256

DESCRIPTIONS = {
    "ids": "Token ids.",
    "place": "The place of the first id in the caches.",
    "logits": "The logits of what comes next.",
    "keys": "The keys of a block; give the output back as the next call's input.",
    "values": "The values of a block, likewise.",
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
    max_new_tokens=64,
    end_token=None,
    credits=None,
):
    """Writes a causal language model as a .tflite file that goes on from prompts.

    Its signatures, over one set of weights, are those of `generator_signatures`: "prefill_16" and
    "prefill_64" read prompts, "decode" one token more, and "decode_4" one more of each of 4 beams.
    The caches are inputs and outputs. It has no operation outside TFLite's own, and holds the
    tokenizer, for `distill.runtime.TextGenerator`.

    Args:
        model: a GPT or a GPT-2 with the head "causal_lm".
        path: of the file.
        tokenizer: the model's.
        quantization: "float32", "float16", "int8", "int4" or "int4_block32", see `export_tflite`.
        max_length: the most tokens of a prompt and its text together; the model's positions, or
            256 if they are more, where None.
        name: of the model, in the metadata.
        fixed_lengths: how many tokens of a prompt are read at a time; 16 and 64 where None.
        beams: K of beam search; 1 for greedy search alone.
        max_new_tokens: the most of a beam search, for which the caches have places.
        end_token: the token that ends a text; what stands between documents where None.
        credits: `distill.device.metadata.Credits`, or None.

    Raises:
        InputError: for a model of another head or family, a tokenizer that is not the model's or
            has no end token, lengths that do not fit, and a quantization that needs calibration.
    """
    decoder = CausalDecoder(model)
    quantization = _check_quantization(quantization)
    check_vocabulary(tokenizer, model)
    end = find_end_token(tokenizer, end_token)
    max_length = max_length or min(decoder.max_length, MAX_LENGTH)
    _check_length(max_length, decoder.max_length)
    _check_beams(beams, max_new_tokens, max_length, decoder.vocabulary_size)
    lengths = _check_lengths(fixed_lengths, max_length)
    if quantization in LOOKUPS:
        decoder = with_lookup(decoder, LOOKUPS[quantization], max_length)
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
    with in_float(model):
        content = to_tflite(model, endpoints, quantization)
    description = "Goes on from a text. Made with tfnlp."
    _write(path, content, name, description, tokenizer.settings() | settings, tokenizer, credits)


def _write(path, content, name, description, settings, tokenizer, credits):
    """Writes a converted model with its metadata, tokenizer and settings."""
    if isinstance(tokenizer, WordPieceTokenizer):
        files = {VOCABULARY_FILE: "\n".join(tokenizer.vocabulary)}
    else:
        files = {TOKENIZER_FILE: tokenizer.to_json()}
    described = [
        [TensorDescription(name, DESCRIPTIONS[name.partition("_")[0]]) for name in names]
        for names in tensor_names(content)
    ]
    metadata = text_model_metadata(
        name, description, *described, [SETTINGS_FILE, *files], False, credits
    )
    content = add_files(add_metadata(content, metadata), settings, files)
    with replaced_when_whole(path) as temporary:
        pathlib.Path(temporary).write_bytes(content)


def _check_quantization(quantization):
    quantization = check_quantization(quantization)
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
    if not 1 <= max_new_tokens <= max_length:
        raise InputError(
            f"max_new_tokens={max_new_tokens} must lie between 1 and max_length={max_length}."
        )


def _check_lengths(fixed_lengths, max_length):
    """The lengths of prompts to be read at a time, the smallest first."""
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
