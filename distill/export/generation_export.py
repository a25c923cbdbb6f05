"""Export of generation models to a .tflite file with its tokenizer, for `distill.runtime`.

All decoders here generate token by token, with caches as inputs and outputs of these signatures:

- "decode" reads one token, `ids` (1, 1), writes its keys and values at `place` (1,) of the caches,
  and outputs the next token's `logits` (1, 1, V).
- "decode_4", with 4 beams, reads a token of each, `ids` (1, 4), all at `position` (1,) of their
  texts, into the places from `place` on. `seen` (1, 4, places) is 1 where a text may attend, its
  own place included.

Both take and return `keys_0`, `values_0` ... of each block, (1, N, places, H) float32. With
`cache_type="int8"` these are int8, of values (1, N, H, places), beside `keys_scales_0`,
`values_scales_0` ..., (1, N, 1, places) float32.
"""

import pathlib

import tensorflow as tf

from distill.compression.file_quantization import check_quantization
from distill.export.conversion import check_computes_in_float32, to_tflite
from distill.export.length_signatures import check_range
from distill.export.metadata import complete_file, tokenizer_files
from distill.export.options import DecoderExport
from distill.runtime.associated_files import TARGET_TOKENIZER_FILE
from distill.runtime.cached_decoder import DECODE, ENCODE, PREFILL
from tfnlp.functional.int8_cache import Int8Cache
from tfnlp.generation import CausalDecoder, EncoderDecoderCache, Translator
from tfnlp.generation.batched_search import find_end_tokens
from tfnlp.generation.key_value_cache import Cached
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
    decoder = CausalDecoder(model)
    _check_model(model, options.quantization)
    check_vocabulary(tokenizer, model)
    ends = find_end_tokens(tokenizer, options.end_token)
    max_length = options.max_length or min(decoder.max_length, MAX_LENGTH)
    check_range(3, decoder.max_length or max_length, max_length=max_length)
    max_new_tokens = options.max_new_tokens
    if max_new_tokens is None:
        max_new_tokens = min(NEW_TOKENS, max_length)
    check_range(1, max_length, max_new_tokens=max_new_tokens)
    check_range(1, decoder.vocabulary_size // 2, beams=options.beams)
    lengths = _lengths(options.fixed_lengths, max_length)
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


def generator_signatures(
    decoder, max_length, lengths, beams, max_new_tokens, cache_type="float32"
):
    """Return the signatures of a causal LM.

    Beside those above, "prefill_32", for each length, reads `ids` (1, 32) into the caches.

    Args:
        decoder: a `CausalDecoder`.
        max_length, beams, max_new_tokens, cache_type: as in `DecoderExport`.
        lengths: of the prompt chunks to read at once.

    Returns:
        {name: (function, list of specs)}.
    """
    places = max_length + (beams - 1) * max_new_tokens
    caches = _cache_specs(decoder, places, cache_type)
    endpoints = _decode_signatures(decoder, caches, beams)
    for length in lengths:
        prefill = _consecutive(decoder, caches, length, gives_logits=False)
        endpoints[f"{PREFILL}_{length}"] = prefill
    return endpoints


def translator_signatures(decoder, lengths, beams, max_new_tokens, cache_type="float32"):
    """Return the signatures of an encoder-decoder.

    Beside those above, "encode_32", for each length, reads a source, `ids` and `mask` (1, 32). It
    outputs the cross-attention inputs of each block, `source_keys_0`, `source_values_0` ..., (1,
    N, S, H) with S the maximum length, and `source_mask` (1, S), which are inputs of decoding.

    Args:
        decoder: an `EncoderDecoderCache`.
        lengths: of sources.
        beams, max_new_tokens, cache_type: as in `DecoderExport`.

    Returns:
        {name: (function, list of specs)}.
    """
    longest = max(lengths)
    source = _specs(decoder, "cross_attention", longest, "source_")
    source.append(tf.TensorSpec((1, longest), "int32", name="source_mask"))
    caches = _cache_specs(decoder, beams * max_new_tokens, cache_type)
    endpoints = _decode_signatures(decoder, caches, beams, source)

    def encode(ids, mask):
        pairs = decoder.encode(ids, mask)
        more = longest - ids.shape[1]
        tensors = [tf.pad(x, ((0, 0), (0, 0), (0, more), (0, 0))) for pair in pairs for x in pair]
        # An output that is an unchanged input would get no buffer of its own.
        tensors.append(tf.pad(tf.minimum(mask, 1), ((0, 0), (0, more))))
        return {spec.name: x for spec, x in zip(source, tensors, strict=True)}

    for length in lengths:
        mask = tf.TensorSpec((1, length), "int32", name="mask")
        endpoints[f"{ENCODE}_{length}"] = encode, [_ids(length), mask]
    return endpoints


def _decode_signatures(decoder, caches, beams, source=()):
    endpoints = {DECODE: _consecutive(decoder, caches, 1, source)}
    if beams == 1:
        return endpoints
    read, tensors = _reader(decoder, caches, source)

    def run(ids, place, position, seen, *tensors):
        return read(ids, tf.broadcast_to(position[None], (1, beams)), place, seen > 0, tensors)

    seen = tf.TensorSpec((1, beams, _places(caches)), "int32", name="seen")
    inputs = [_ids(beams), _number("place"), _number("position"), seen]
    endpoints[f"{DECODE}_{beams}"] = run, [*inputs, *tensors]
    return endpoints


def _consecutive(decoder, caches, length, source=(), gives_logits=True):
    """Return a signature that reads `length` consecutive tokens of one text."""
    read, tensors = _reader(decoder, caches, source, gives_logits)

    def run(ids, place, *tensors):
        positions = place + tf.range(length)
        seen = tf.range(_places(caches))[None, None] <= positions[None, :, None]
        return read(ids, positions[None], place, seen, tensors)

    return run, [_ids(length), _number("place"), *tensors]


def _reader(decoder, caches, source, gives_logits=True):
    """Return a function that reads ids into the caches, and the specs of its `tensors`.

    The function takes ids and positions (1, T), the place of the first id (1,), where ids may
    attend (1, T, places), and the tensors: the caches, then the source.
    """

    def read(ids, positions, place, seen, tensors):
        tensors, encoded = tensors[: len(caches)], tensors[len(caches) :]
        if encoded:
            *projected, mask = encoded
            encoded = tuple(zip(projected[0::2], projected[1::2], strict=True)), mask
        if any(_is_scales(spec) for spec in caches):
            tensors = tuple(map(Int8Cache, tensors[0::2], tensors[1::2]))
        state = Cached(tensors[0::2], tensors[1::2], None, None, encoded)
        x, state = decoder._read(ids, positions, seen, state, place[0])
        pairs = zip(state.keys, state.values, strict=True)
        outputs = zip([spec.name for spec in caches], tf.nest.flatten(list(pairs)), strict=True)
        return dict(outputs) | ({"logits": decoder._logits(x)} if gives_logits else {})

    return read, [*caches, *source]


def _cache_specs(decoder, places, cache_type):
    """Return the specs of each block's cached keys and values, of `int8` with their scales."""
    specs = _specs(decoder, "attention", places)
    if cache_type == "float32":
        return specs
    rounded = []
    for spec in specs:
        name, _, number = spec.name.partition("_")
        _, heads, _, size = spec.shape
        shape = (1, heads, size, places) if name == "values" else spec.shape
        rounded.append(tf.TensorSpec(shape, "int8", name=spec.name))
        shape = 1, heads, 1, places
        rounded.append(tf.TensorSpec(shape, "float32", name=f"{name}_scales_{number}"))
    return rounded


def _specs(decoder, attention, places, prefix=""):
    """Return the specs of each block's keys and values, for the attention of this name."""
    specs = []
    for i, block in enumerate(decoder._blocks):
        layer = getattr(block, attention)
        for name, size in (("keys", layer.key_dim), ("values", layer.value_dim)):
            shape = (1, layer.num_heads, places, size)
            specs.append(tf.TensorSpec(shape, "float32", name=f"{prefix}{name}_{i}"))
    return specs


def _places(caches):
    """Return the number of places of caches, whose first are keys."""
    return caches[0].shape[2]


def _is_scales(spec):
    return "_scales_" in spec.name


def _ids(length):
    return tf.TensorSpec((1, length), "int32", name="ids")


def _number(name):
    return tf.TensorSpec((1,), "int32", name=name)


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
