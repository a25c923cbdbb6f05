"""Validation of texts, pairs, sentences and numbers from callers."""

import math
import operator
import re
import unicodedata

from tfnlp.utils.errors import InputError

# Half of a UTF-16 surrogate pair: not text, but JSON and broken file names contain them.
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Vowels and final letters of Hangul syllables (NFD), which Unicode does not class as marks.
_JAMO = re.compile("[\u1160-\u11ff\ud7b0-\ud7fb]")


def as_texts(texts, name="texts"):
    """Return texts as a list of strings that can be encoded in UTF-8.

    A single string is one text. A lone surrogate becomes U+FFFD, also one character, so offsets in
    the original text stay valid.

    Args:
        texts: a string, or a sequence of strings.
        name: the name of the argument in error messages.

    Raises:
        InputError: if an item is not a string, with its index.
    """
    if isinstance(texts, str):
        texts = [texts]
    try:
        texts = list(texts)
    except TypeError:
        raise InputError(f"{name}={texts!r} must be a list of strings.") from None
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"{name}[{i}] is {text!r}, not a string; leave it out, or give an empty one."
            )
    return [_well_formed(text) for text in texts]


def as_pairs(texts, pairs, names=("texts", "pairs")):
    """Return two equally long lists of texts that form pairs.

    Raises:
        InputError: as in `as_texts`, and if the lists differ in length.
    """
    first, second = as_texts(texts, names[0]), as_texts(pairs, names[1])
    if len(first) != len(second):
        raise InputError(
            f"{names[1]} holds {len(second)} texts and {names[0]} {len(first)}; give one of each "
            "for a pair."
        )
    return first, second


def as_sentences(sentences, name="sentences"):
    """Return sentences as lists of words.

    A single string is one sentence. A sentence that is a string is split at white space.

    Args:
        sentences: a string, or a sequence of strings and of sequences of strings.
        name: the name of the argument in error messages.

    Raises:
        InputError: if a word is not a string, with its index.
    """
    if isinstance(sentences, str):
        sentences = [sentences]
    try:
        rows = [s.split() if isinstance(s, str) else list(s) for s in sentences]
    except TypeError:
        raise InputError(f"{name} must be a list of sentences, each a list of words.") from None
    for i, words in enumerate(rows):
        try:
            "".join(words).encode()
        except (TypeError, UnicodeEncodeError):
            rows[i] = as_texts(words, f"{name}[{i}]")
    return rows


def character_end(text, end):
    """Return the end of a span, moved behind the marks that belong to its last character.

    Normalisers drop a combining accent (U+0301) or compose it with the character before, as they
    do with the letters of a Hangul syllable. Tokens then end before them.
    """
    while 0 < end < len(text) and _continues(text[end]):
        end += 1
    return end


def check_whole(**numbers):
    """Raise an `InputError` for a keyword argument that is not an integer."""
    for name, value in numbers.items():
        try:
            operator.index(value)
        except TypeError:
            raise InputError(f"{name}={value!r} must be a whole number.") from None


def check_at_least(least, **numbers):
    """Raise an `InputError` for a keyword argument that is not an integer of at least `least`."""
    check_whole(**numbers)
    for name, value in numbers.items():
        if value < least:
            raise InputError(f"{name}={value} must be at least {least}.")


def _continues(character):
    return unicodedata.category(character).startswith("M") or _JAMO.match(character)


def check_finite(**numbers):
    """Raise an `InputError` for a keyword argument that is not a finite number."""
    for name, value in numbers.items():
        try:
            finite = math.isfinite(value)
        except TypeError:
            finite = False
        if not finite:
            raise InputError(f"{name}={value!r} must be a finite number.")


def _well_formed(text):
    try:
        text.encode()  # faster than a search
    except UnicodeEncodeError:
        return LONE_SURROGATE.sub("\ufffd", text)
    return text
