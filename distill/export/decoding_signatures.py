"""Decoding signatures of a .tflite file, with caches as inputs and outputs.

All decoders here generate token by token, with these signatures:

- "decode" reads one token, `ids` (1, 1), writes its keys and values at `place` (1,) of the caches,
  and outputs the next token's `logits` (1, 1, V).
- "decode_4", with 4 beams, reads a token of each, `ids` (1, 4), all at `position` (1,) of their
  texts, into the places from `place` on. `seen` (1, 4, places) is 1 where a text may attend, its
  own place included.

Both take and return `keys_0`, `values_0` ... of each block, (1, N, places, H) float32.
"""

import tensorflow as tf

from distill.runtime.cached_decoder import DECODE, ENCODE, PREFILL
from tfnlp.generation.key_value_cache import Cached


def generator_signatures(decoder, max_length, lengths, beams, max_new_tokens):
    """Return the signatures of a causal LM.

    Beside those above, "prefill_32", for each length, reads `ids` (1, 32) into the caches.

    Args:
        decoder: a `CausalDecoder`.
        max_length: the most tokens of prompt and continuation together.
        lengths: of the prompt chunks to read at once.
        beams: K, 1 for greedy search alone.
        max_new_tokens: the most new tokens of a beam search.

    Returns:
        {name: (function, list of specs)}.
    """
    places = max_length + (beams - 1) * max_new_tokens
    endpoints = _decode_signatures(decoder, places, beams)
    for length in lengths:
        endpoints[f"{PREFILL}_{length}"] = _consecutive(
            decoder, places, length, gives_logits=False
        )
    return endpoints


def translator_signatures(decoder, lengths, beams, max_new_tokens):
    """Return the signatures of an encoder-decoder.

    Beside those above, "encode_32", for each length, reads a source, `ids` and `mask` (1, 32). It
    outputs the cross-attention inputs of each block, `source_keys_0`, `source_values_0` ..., (1,
    N, S, H) with S the maximum length, and `source_mask` (1, S), which are inputs of decoding.

    Args:
        decoder: an `EncoderDecoderCache`.
        lengths: of sources.
        beams: K, 1 for greedy search alone.
        max_new_tokens: the most tokens of a translation.

    Returns:
        {name: (function, list of specs)}.
    """
    longest = max(lengths)
    source = _cache_specs(decoder, "cross_attention", longest, "source_")
    source.append(tf.TensorSpec((1, longest), "int32", name="source_mask"))
    endpoints = _decode_signatures(decoder, beams * max_new_tokens, beams, source)

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


def _decode_signatures(decoder, places, beams, source=()):
    endpoints = {DECODE: _consecutive(decoder, places, 1, source)}
    if beams == 1:
        return endpoints
    read, tensors = _reader(decoder, places, source)

    def run(ids, place, position, seen, *tensors):
        return read(ids, tf.broadcast_to(position[None], (1, beams)), place, seen > 0, tensors)

    seen = tf.TensorSpec((1, beams, places), "int32", name="seen")
    inputs = [_ids(beams), _number("place"), _number("position"), seen]
    endpoints[f"{DECODE}_{beams}"] = run, [*inputs, *tensors]
    return endpoints


def _consecutive(decoder, places, length, source=(), gives_logits=True):
    """Return a signature that reads `length` consecutive tokens of one text."""
    read, tensors = _reader(decoder, places, source, gives_logits)

    def run(ids, place, *tensors):
        positions = place + tf.range(length)
        seen = tf.range(places)[None, None] <= positions[None, :, None]
        return read(ids, positions[None], place, seen, tensors)

    return run, [_ids(length), _number("place"), *tensors]


def _reader(decoder, places, source, gives_logits=True):
    """Return a function that reads ids into the caches, and the specs of its `tensors`.

    The function takes ids and positions (1, T), the place of the first id (1,), where ids may
    attend (1, T, places), and the tensors: the caches, then the source.
    """
    caches = _cache_specs(decoder, "attention", places)

    def read(ids, positions, place, seen, tensors):
        tensors, encoded = tensors[: len(caches)], tensors[len(caches) :]
        if encoded:
            *projected, mask = encoded
            encoded = tuple(zip(projected[0::2], projected[1::2], strict=True)), mask
        state = Cached(tensors[0::2], tensors[1::2], None, None, encoded)
        x, state = decoder._read(ids, positions, seen, state, place[0])
        tensors = [x for pair in zip(state.keys, state.values, strict=True) for x in pair]
        outputs = {spec.name: x for spec, x in zip(caches, tensors, strict=True)}
        return outputs | ({"logits": decoder._logits(x)} if gives_logits else {})

    return read, [*caches, *source]


def _cache_specs(decoder, attention, places, prefix=""):
    """Return the specs of each block's keys and values, for the attention of this name."""
    specs = []
    for i, block in enumerate(decoder._blocks):
        layer = getattr(block, attention)
        for name, size in (("keys", layer.key_dim), ("values", layer.value_dim)):
            shape = (1, layer.num_heads, places, size)
            specs.append(tf.TensorSpec(shape, "float32", name=f"{prefix}{name}_{i}"))
    return specs


def _ids(length):
    return tf.TensorSpec((1, length), "int32", name="ids")


def _number(name):
    return tf.TensorSpec((1,), "int32", name=name)
