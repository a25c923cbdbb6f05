"""Validation of texts, pairs and sentences from callers."""

import logging
import re
import unicodedata

from tfnlp.utils.errors import InputError, unknown_name
from tfnlp.utils.settings import check_whole

# Each policy, and the fate of a text that is too long for a model: it is refused, loses its end,
# or is left out.
TOO_LONG = {"error": "refused", "cut": "cut", "skip": "skipped"}

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
    texts = _listed(texts)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"{name}[{i}] is {text!r}, not a string; leave it out, or give an empty one."
            )
    return [well_formed(text) for text in texts]


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


def as_sentences(sentences):
    """Return sentences as lists of words.

    A single string is one sentence. A sentence that is a string is split at white space.

    Args:
        sentences: a string, or a sequence of strings and of sequences of strings.

    Raises:
        InputError: if a word is not a string, with its index.
    """
    rows = [s.split() if isinstance(s, str) else _listed(s) for s in _listed(sentences)]
    for i, words in enumerate(rows):
        try:
            "".join(words).encode()
        except (TypeError, UnicodeEncodeError):
            rows[i] = as_texts(words, f"sentences[{i}]")
    return rows


def _listed(texts):
    """Return a list; what is no sequence of texts becomes the only one."""
    return list(texts) if hasattr(texts, "__iter__") and not isinstance(texts, str) else [texts]


def well_formed(text):
    """Return a text with U+FFFD for each lone surrogate."""
    try:
        text.encode()  # faster than a search
    except UnicodeEncodeError:
        return LONE_SURROGATE.sub("\ufffd", text)
    return text


def character_end(text, end):
    """Return the end of a span, moved behind the marks that belong to its last character.

    Normalisers drop a combining accent (U+0301) or compose it with the character before, as they
    do with the letters of a Hangul syllable. Tokens then end before them.
    """
    while 0 < end < len(text) and (
        unicodedata.category(text[end]).startswith("M") or _JAMO.match(text[end])
    ):
        end += 1
    return end


def room_for_text(max_length, special):
    """Return the number of text tokens in `max_length` beside some special ones.

    Raises:
        InputError: if there is none.
    """
    check_whole(max_length=max_length)
    if max_length <= special:
        raise InputError(
            f"max_length={max_length} leaves no room for a text beside {special} special tokens; "
            f"give at least {special + 1}."
        )
    return max_length - special


def check_too_long(too_long):
    """Raise an `InputError` for a value that is not in `TOO_LONG`."""
    if too_long not in TOO_LONG:
        raise unknown_name("too_long", too_long, TOO_LONG)


def warn_of_long(is_long, kind, name, limit, too_long):
    """Log the number of texts that are too long, and the first of them; nothing if none is.

    Args:
        is_long: (n,) bool.
        kind: a plural noun for the texts.
        name: a function from a text's index to its name.
        limit: the limit that they exceed, a string.
        too_long: the policy, "cut" or "skip".
    """
    if is_long.any():
        first, count = name(int(is_long.argmax())), f"{is_long.sum()} of {len(is_long)}"
        # Not absl's logger, which the mobile runtime lacks.
        logging.getLogger(__name__).warning(
            f"{count} {kind} are longer than {limit}, {first} the first; "
            f"they were {TOO_LONG[too_long]}."
        )
