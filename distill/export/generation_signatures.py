"""Signatures of generation models, by which a runtime reads and generates token by token.

Caches are inputs and outputs. The decoders of `distill.runtime` have these signatures:

- "decode" reads one token, `ids` (1, 1), writes its keys and values at `place` (1,) of the caches,
  and outputs the next token's `logits` (1, 1, V).
- "decode_4", with 4 beams, reads a token of each, `ids` (1, 4), all at `position` (1,) of their
  texts, into the places from `place` on. `seen` (1, 4, places) is 1 where a text may attend, its
  own place included.

Both take and return `keys_0`, `values_0` ... of each block, (1, N, places, H) float32. With
`cache_type="int8"` these are int8, of values (1, N, H, places), beside `keys_scales_0`,
`values_scales_0` ..., (1, N, 1, places) float32.
"""

import tensorflow as tf

from distill.runtime.cached_decoder import DECODE, ENCODE, PREFILL
from tfnlp.functional.int8_cache import Int8Cache
from tfnlp.generation.key_value_cache import Cached


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
    source = _specs(decoder, "cross_attention", longest, ("source_keys", "source_values"))
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


def litertlm_signatures(decoder, max_length, lengths):
    """Return the signatures of a causal LM by the names that LiteRT-LM's runtime looks for.

    "prefill_32", for each length, reads `tokens` (1, 32) at the positions `input_pos` (32,), and
    "decode" one token, after which it outputs `logits` (1, 1, V). Both take and return
    `kv_cache_k_0`, `kv_cache_v_0` ... of each block, (1, N, places, H) float32.

    Args:
        decoder: a `CausalDecoder`.
        max_length: the most tokens of prompt and text.
        lengths: of the prompt chunks to read at once.

    Returns:
        {name: (function, list of specs)}.
    """
    # The runtime pads the last chunk of a prompt, and refuses one for which caches lack places.
    places = max_length + max(lengths) - 1
    caches = _specs(decoder, "attention", places, ("kv_cache_k", "kv_cache_v"))

    def signature(length, gives_logits):
        read, tensors = _reader(decoder, caches, (), gives_logits)

        def run(tokens, input_pos, *tensors):
            seen = tf.range(places)[None, None] <= input_pos[None, :, None]
            return read(tokens, input_pos[None], input_pos, seen, tensors)

        inputs = [tf.TensorSpec((1, length), "int32", name="tokens")]
        inputs.append(tf.TensorSpec((length,), "int32", name="input_pos"))
        return run, [*inputs, *tensors]

    prefills = {f"{PREFILL}_{length}": signature(length, False) for length in lengths}
    return prefills | {DECODE: signature(1, True)}


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


def _specs(decoder, attention, places, names=("keys", "values")):
    """Return the specs of each block's keys and values, for the attention of this name."""
    specs = []
    for i, block in enumerate(decoder._blocks):
        layer = getattr(block, attention)
        for name, size in zip(names, (layer.key_dim, layer.value_dim), strict=True):
            shape = (1, layer.num_heads, places, size)
            specs.append(tf.TensorSpec(shape, "float32", name=f"{name}_{i}"))
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
