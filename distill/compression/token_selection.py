"""Choice of the tokens that stay when a vocabulary is pruned to a corpus or to scripts."""

import collections
import json
import re
import string

import numpy as np
import tokenizers

from tfnlp.text import (
    ByteFallbackBpeTokenizer,
    ByteLevelBpeTokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
)
from tfnlp.text.reading.text_arguments import as_texts
from tfnlp.text.tokenizers.byte_fallback_bpe import BYTES
from tfnlp.text.tokenizers.word_starts import bytes_of_name
from tfnlp.text.tokenizers.wordpiece import MAX_CHARS_PER_WORD
from tfnlp.utils.errors import InputError

# Characters of any text, kept if the vocabulary has them.
COMMON_CHARACTERS = string.ascii_letters + string.digits + string.punctuation
# Spare tokens of BERT's vocabularies, which no text has.
UNUSED = re.compile(r"\[unused\d+\]")
# Share of a corpus' characters whose single-character tokens are kept before words. With 8,000
# of 16,000 tokens for Korean reviews (NSMC), 0 leaves 1.0 % of the tokens unknown and changes
# 51 % of the texts; 0.999 leaves 0.2 % and changes 59 %; all characters 0 and 67 %.
CHARACTER_SHARE = 0.999


def tokens_to_keep(tokenizer, texts=None, keep_tokens=None, scripts=(), required=()):
    """Return the ids that stay when a vocabulary is pruned to a corpus or to scripts.

    Args:
        tokenizer, texts, keep_tokens, scripts: as in `prune_vocabulary`.
        required: further ids that stay.

    Returns:
        A sorted list of ids; errors as in `prune_vocabulary`.
    """
    if texts is None and keep_tokens is None and not scripts:
        raise InputError("Nothing says which tokens stay; give texts, `scripts` or `keep_tokens`.")
    if texts is not None and not len(texts):
        raise InputError("The corpus has no texts; give some that are like those to come.")
    texts = as_texts(texts or [])
    tokens = tokenizer.tokens_by_id()
    ids = {token: i for i, token in enumerate(tokens)}
    counts = np.bincount(tokenizer.encode(texts).token_ids, minlength=len(tokens))
    parts = _merged_parts(tokenizer, ids)
    kept = {ids[token] for token in tokenizer.special_tokens.tokens.values() if token in ids} | {
        *required
    }
    kept |= {i for i in _required_ids(tokenizer, ids) if i is not None}
    kept |= {tokenizer.token_id(token.content) for token in tokenizer.added_tokens}
    if keep_tokens is not None and keep_tokens < len(kept):
        raise InputError(
            f"keep_tokens={keep_tokens} is below the {len(kept)} tokens that every text needs "
            f"(special ones{' and bytes' if parts else ''}); give more."
        )
    room = len(tokens) if keep_tokens is None else keep_tokens - len(kept)
    frequent, characters = _character_ids(tokens, ids, counts)
    # Characters take at most half of the room, to leave some for words.
    first = characters[: min(frequent, room // 2)]
    for i in _pieces_of_unknown_words(tokenizer, ids, texts):
        counts[i] += 1
    by_count = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)].tolist()
    # Vocabularies begin with their commonest tokens.
    others = _ids_of_scripts(tokenizer, tokens, scripts) if scripts else range(len(tokens))
    others = others if scripts or not texts else ()
    others = [i for i in others if not UNUSED.fullmatch(tokens[i])]
    for i in (*first, *by_count, *characters, *others):
        new = _with_parts(i, parts) - kept
        if keep_tokens is None or len(kept) + len(new) <= keep_tokens:
            kept |= new
    return sorted(kept)


def engine_content(tokenizer):
    """Return the JSON content of a tokenizer's engine."""
    return json.loads(tokenizer.to_json())


def _required_ids(tokenizer, ids):
    """Return the ids, beside special tokens, that tokenization depends on."""
    if isinstance(tokenizer, ByteLevelBpeTokenizer):
        return [ids.get(byte) for byte in tokenizers.pre_tokenizers.ByteLevel.alphabet()]
    if isinstance(tokenizer, ByteFallbackBpeTokenizer):
        return [ids.get(byte) for byte in BYTES]
    if isinstance(tokenizer, UnigramTokenizer):
        # The score of unknown pieces is derived from the lowest score.
        pieces = engine_content(tokenizer)["model"]["vocab"]
        return [min(range(len(pieces)), key=lambda i: pieces[i][1])]
    return []


def _ids_of_scripts(tokenizer, tokens, scripts):
    """Return the ids of tokens without letters of other scripts, in their order.

    Digits, punctuation, symbols and marks are of every script.
    """
    for script in scripts:
        _without_scripts((script,))
    if isinstance(tokenizer, ByteLevelBpeTokenizer):  # a part of a character is of every script
        tokens = [bytes_of_name(token).decode("utf-8", "replace") for token in tokens]
    rest = _without_scripts(("Common", "Inherited", *scripts))
    return [i for i, token in enumerate(tokens) if not rest.normalize_str(token)]


def _without_scripts(scripts):
    """Return a normaliser that removes the characters of scripts of Unicode, such as "Hangul"."""
    pattern = "".join(rf"\p{{{script}}}" for script in scripts)
    try:
        return tokenizers.normalizers.Replace(tokenizers.Regex(f"[{pattern}]"), "")
    except Exception:  # the engine raises plain Exception
        raise InputError(
            f"scripts={','.join(scripts)} is no script of Unicode; give names such as Hangul, "
            "Latin, Han, Hiragana, Cyrillic."
        ) from None


def _character_ids(tokens, ids, counts):
    """Compute the ids of single characters: common ones, then those of the corpus by frequency.

    Returns:
        The number of ids that make up `CHARACTER_SHARE` of the corpus, and all ids.
    """
    frequency = collections.Counter()
    for i in np.flatnonzero(counts):
        for character in tokens[i].removeprefix("##"):
            frequency[character] += counts[i]
    remaining = CHARACTER_SHARE * frequency.total()
    characters = dict.fromkeys(COMMON_CHARACTERS, True)  # whether each is frequent
    for character, count in frequency.most_common():
        characters.setdefault(character, remaining > 0)
        remaining -= count
    spellings = [
        (ids[prefix + character], is_frequent)
        for character, is_frequent in characters.items()
        for prefix in ("", "##", "▁")
        if prefix + character in ids
    ]
    return sum(is_frequent for _, is_frequent in spellings), [i for i, _ in spellings]


def _pieces_of_unknown_words(tokenizer, ids, texts):
    """Return the ids of the pieces that WordPiece matched in a word before it gave up on it.

    Without them it would match other, shorter pieces, and might no longer give up.
    """
    if not isinstance(tokenizer, WordPieceTokenizer):
        return set()
    engine = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    unknown, words = tokenizer.unknown_token_id, set()
    for text, encoding in zip(texts, tokenizer.encode(texts), strict=True):
        if unknown in encoding.token_ids:
            normal = engine.normalizer.normalize_str(text)
            words.update(word for word, _ in engine.pre_tokenizer.pre_tokenize_str(normal))
    matched = set()
    for word in words:
        pieces = _greedy_pieces(word, ids)
        if sum(map(len, pieces)) < len(word) <= MAX_CHARS_PER_WORD:
            matched |= {ids[p if i == 0 else f"##{p}"] for i, p in enumerate(pieces)}
    return matched


def _greedy_pieces(word, ids):
    """Return the longest pieces from the left, without "##", up to where no piece matches."""
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in ids), None)
        if end is None:
            break
        pieces.append(word[start:end])
        start = end
    return pieces


def _merged_parts(tokenizer, ids):
    """Return {id: the ids it is merged from} for BPE; empty for other tokenizers."""
    parts = collections.defaultdict(set)
    if isinstance(tokenizer, (ByteLevelBpeTokenizer, ByteFallbackBpeTokenizer)):
        for left, right in bpe_merges(tokenizer):
            parts[ids[left + right]] |= {ids[left], ids[right]}
    return dict(parts)


def bpe_merges(tokenizer):
    """Return the merges of BPE, a list of pairs of tokens."""
    merges = engine_content(tokenizer)["model"]["merges"]
    return [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in merges]


def _with_parts(i, parts):
    """Return the set of an id and all ids that it is merged from, recursively."""
    ids, stack = set(), [i]
    while stack:
        i = stack.pop()
        if i not in ids:
            ids.add(i)
            stack += parts.get(i, ())
    return ids
