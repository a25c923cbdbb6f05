"""A model that writes as the signatures of a .tflite file, its caches among their inputs."""

import tensorflow as tf
from keras import ops

from distill.device.decoder import DECODE, PREFILL
from tfnlp.generation.cache import Cached


def generator_signatures(decoder, max_length, lengths, beams, max_new_tokens):
    """The signatures of a causal language model.

    - "prefill_32", for each length, reads `ids` (1, 32) into the cache from `place` (1,) on.
    - "decode" reads one more, `ids` (1, 1), and gives `logits` (1, 1, V) of what comes next.
    - "decode_4", with 4 beams, reads one more of each, `ids` (1, 4), all at `position` (1,) of
      their texts, into the places from `place` on; `seen` (1, 4, places) is 1 where a text may
      look, its own place too.

    All take and give `keys_0`, `values_0` ... of each block, (1, N, places, H) float32.

    Args:
        decoder: a `CausalDecoder`.
        max_length: the most tokens of prompt and text together.
        lengths: of prompts read at once.
        beams: K, 1 for greedy search alone.
        max_new_tokens: the most of a beam search.

    Returns:
        {name: (function, list of specs)}.
    """
    places = max_length + (beams - 1) * max_new_tokens
    names, caches = cache_specs(decoder, places)

    def read(ids, positions, place, seen, caches, give_logits):
        keys, values = tuple(caches[0::2]), tuple(caches[1::2])
        x, state = decoder._read(ids, positions, seen, Cached(keys, values, None, None), place[0])
        pairs = zip(state.keys, state.values, strict=True)
        found = dict(zip(names, (x for pair in pairs for x in pair), strict=True))
        return found | ({"logits": decoder._logits(x)} if give_logits else {})

    def of_length(length, give_logits):
        def run(ids, place, *caches):
            positions = place + tf.range(length)
            seen = tf.range(places)[None, None] <= positions[None, :, None]
            return read(ids, positions[None], place, seen, caches, give_logits)

        return run, [_ids(length), _number("place"), *caches]

    def of_beams(ids, place, position, seen, *caches):
        positions = tf.broadcast_to(position[None], (1, beams))
        return read(ids, positions, place, seen > 0, caches, True)

    found = {f"{PREFILL}_{length}": of_length(length, False) for length in lengths}
    found[DECODE] = of_length(1, True)
    if beams > 1:
        seen = tf.TensorSpec((1, beams, places), "int32", name="seen")
        inputs = [_ids(beams), _number("place"), _number("position"), seen]
        found[f"{DECODE}_{beams}"] = of_beams, [*inputs, *caches]
    return found


def cache_specs(decoder, places):
    """The names and specs of a decoder's keys and values, block by block."""
    specs = []
    for i, block in enumerate(decoder._blocks):
        attention = block.attention
        sizes = {"keys": attention.key_dim, "values": attention.value_dim}
        for name, size in sizes.items():
            shape = (1, attention.num_heads, places, size)
            specs.append(tf.TensorSpec(shape, "float32", name=f"{name}_{i}"))
    return [spec.name for spec in specs], specs


def with_lookup(decoder, lookup, max_length):
    """A decoder whose embeddings are read by `lookup(table, ids)`, see `LOOKUPS` of `tflite`."""
    layer = decoder._embeddings
    tokens, positions = (
        ops.convert_to_numpy(x) for x in (layer.token_table, layer.position_table)
    )

    def rows(table, ids):  # ids (1, T)
        return lookup(tf.constant(table), tf.reshape(ids, (-1,)))[None]

    def embed(token_ids, places):
        return rows(tokens, token_ids) + rows(positions[:max_length], places)

    decoder._embed = embed
    return decoder


def _ids(length):
    return tf.TensorSpec((1, length), "int32", name="ids")


def _number(name):
    return tf.TensorSpec((1,), "int32", name=name)
