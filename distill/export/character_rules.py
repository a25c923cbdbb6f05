"""Rules for how a tokenizer reads each code point, for tokenizers on phones.

WordPiece normalises texts code point by code point, then splits them into words. A rule gives the
replacement of one code point, with spaces where words end: {"É": "e", "!": " ! ", "\\u200b": ""}.
Code points without a rule are unchanged. Two tokenizers with the same rules and the same
vocabulary read all texts alike. Rules do not cover the order of several marks on one character.
"""

import functools
import itertools
import struct

import flatbuffers
import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import pre_tokenizers

from tfnlp.text.tokenizers.wordpiece import bert_normalizer

# No version of Unicode has characters in planes 4 to 13.
CODE_POINTS = [*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0x110000)]
# A letter (a click) to which nothing is normalised, and that does not combine with neighbours.
SEPARATOR = "\u01c3"
LETTER = "x"
# Code points in one call: the engine's time grows with the length of a text.
BLOCK = 4096
# Encoding of TensorFlow Text's `FastBertNormalizer`: a flag that the string differs from its code
# point, and the number of low bits for the string's length; its offset in the pool is above.
DIFFERS, LENGTH_BITS = 1 << 30, 6


@functools.cache
def word_rules(*settings):
    """Return the rules of a `WordPieceTokenizer`, {code point as a string: string}.

    Args:
        settings: its `lowercase`, `strip_accents` and `split_cjk`.
    """
    normal = normalized(bert_normalizer(*settings))
    parts = {*map(chr, CODE_POINTS), *"".join(normal.values())} - normal.keys()
    return rules_of(normal, split_characters(pre_tokenizers.BertPreTokenizer(), [*parts]))


def rules_of(normal, alone):
    """Return the rules of a normalisation, {string: string}, and one-character words `alone`."""
    spaced = str.maketrans({character: f" {character} " for character in alone})
    rules = {character: f" {character} " for character in alone if character not in normal}
    return rules | {character: string.translate(spaced) for character, string in normal.items()}


def normalized(normalizer, strings=None):
    """Return the strings that a normaliser of `tokenizers` changes, {string: normal string}.

    Args:
        normalizer: one that leaves `SEPARATOR` and `LETTER` unchanged.
        strings: a list, without `SEPARATOR`; all code points where None.
    """
    if strings is None:
        strings = [chr(i) for i in CODE_POINTS if chr(i) != SEPARATOR]
    changed = {}
    for block in _blocks(strings):
        # A letter follows the last one, since some normalisers strip the ends of texts.
        joined = normalizer.normalize_str(SEPARATOR.join([*block, LETTER]))
        pairs = zip(block, joined.split(SEPARATOR)[:-1], strict=True)
        changed |= {before: after for before, after in pairs if before != after}
    return changed


def split_characters(pre_tokenizer, characters):
    """Return the set of characters that a pre-tokeniser splits into words of their own."""
    alone = set()
    for block in _blocks(characters):
        words = pre_tokenizer.pre_tokenize_str(LETTER + LETTER.join(block) + LETTER)
        alone |= {word for word, _ in words if len(word) == 1}
    return alone - {LETTER}


def compile_rules(rules):
    """Compile rules to SentencePiece's normalisation table, bytes; the longest match applies."""
    sentencepiece.set_min_log_level(1)  # warnings and errors
    normalizer = sentencepiece.SentencePieceNormalizer(norm_map=[*rules.items()])
    spec = sentencepiece_model_pb2.NormalizerSpec()
    spec.ParseFromString(normalizer.serialized_normalizer_spec())
    return spec.precompiled_charsmap


def decompiled(character_map):
    """Return the rules in SentencePiece's compiled normalisation table, {string: string}."""
    spec = sentencepiece_model_pb2.NormalizerSpec(precompiled_charsmap=character_map)
    normalizer = sentencepiece.SentencePieceNormalizer(normalizer_spec=spec)
    return dict(normalizer.decompile())


def normalizer_model(rules):
    """Compile rules of code points to the model of TensorFlow Text's `FastBertNormalizer`, bytes.

    Its double array of bytes is SentencePiece's, except for the leaves: SentencePiece stores the
    offset of a zero-terminated string, TensorFlow Text offset and length.
    """
    zero = rules.get("\0", "\0")
    compiled = compile_rules({key: value for key, value in rules.items() if key != "\0"})
    (size,) = struct.unpack_from("<I", compiled)
    units = np.frombuffer(compiled, "<u4", size // 4, 4).copy()
    pool = compiled[4 + size :]
    for i in np.flatnonzero(units >> 31):
        place = int(units[i]) & 0x7FFFFFFF
        units[i] = 1 << 31 | _encoded(place, pool.index(b"\0", place) - place)
    pool += zero.encode()
    builder = flatbuffers.Builder(len(compiled) + 1024)
    strings = builder.CreateNumpyVector(np.frombuffer(pool, "u1"))
    array = builder.CreateNumpyVector(units)
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(1, array, 0)
    encoded = _encoded(len(pool) - len(zero.encode()), len(zero.encode()))
    builder.PrependInt32Slot(2, 0 if zero == "\0" else encoded, 0)
    builder.PrependUOffsetTRelativeSlot(3, strings, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def ranges(characters, most=6):
    """Format characters as text, such as "U+00C0 to U+00D6, U+0100 and 3 more ranges"."""
    numbers = sorted(map(ord, characters))
    runs = []
    for _, run in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in run]
        runs.append(f"U+{run[0]:04X}" + (f" to U+{run[-1]:04X}" if len(run) > 1 else ""))
    more = len(runs) - most
    return ", ".join(runs[:most]) + (f" and {more} more ranges" if more > 0 else "")


def _encoded(place, length):
    return DIFFERS | place << LENGTH_BITS | length


def _blocks(characters):
    return (characters[i : i + BLOCK] for i in range(0, len(characters), BLOCK))
