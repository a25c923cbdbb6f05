"""Vocabulary pruning: keep the tokens that a corpus needs, and renumber them."""

import collections
import dataclasses
import itertools
import json
import string

import numpy as np
import tokenizers

from distill.compression.rebuild import copy_weights, rebuild
from tfnlp.models import RobertaConfig, check_vocabulary, config_of
from tfnlp.quantization.fake_quantization import count_parameters
from tfnlp.text import ByteLevelBpeTokenizer, UnigramTokenizer, WordPieceTokenizer
from tfnlp.text.text_arguments import as_texts
from tfnlp.text.tokenizer import Tokenizer
from tfnlp.text.tokenizer_loading import tokenizer_statistics
from tfnlp.text.wordpiece import MAX_CHARS_PER_WORD, SPECIAL_TOKENS
from tfnlp.utils.errors import InputError

# Characters of any text, kept if the vocabulary has them.
COMMON_CHARACTERS = string.ascii_letters + string.digits + string.punctuation
# Share of a corpus' characters whose single-character tokens are kept before words. With 8,000
# of 16,000 tokens for Korean reviews (NSMC), 0 leaves 1.0 % of the tokens unknown and changes
# 51 % of the texts; 0.999 leaves 0.2 % and changes 59 %; all characters 0 and 67 %.
CHARACTER_SHARE = 0.999
# Config fields that hold token ids.
TOKEN_IDS = ("pad_token_id", "start_token_id", "end_token_id")


def prune_vocabulary(model, tokenizer, texts, keep_tokens=None):
    """Drop the tokens that a corpus does not need from a tokenizer and its model.

    Special tokens, single characters (bytes, for byte-level BPE) and the tokens of the corpus
    stay, in their order. Without `keep_tokens` every token of the corpus stays. Its texts are then
    the same tokens as before, and the model's outputs on them do not change.

    Args:
        model: from `tfnlp.models.build_model` or `load_model`, with any head.
        tokenizer: the model's.
        texts: the corpus, a list of strings.
        keep_tokens: the most tokens to keep, the most frequent of the corpus first; all that it
            uses where None.

    Returns:
        The smaller model, and its tokenizer.

    Raises:
        InputError: if the corpus has no texts, `keep_tokens` is below the tokens that must stay,
            the tokenizer's ids have gaps, the tokenizer is not one of `tfnlp.text`'s own kinds,
            or the model has an adaptive softmax or another vocabulary for its targets.
    """
    (smaller,), pruned = prune_vocabularies([model], tokenizer, texts, keep_tokens)
    return smaller, pruned


def prune_vocabularies(models, tokenizer, texts, keep_tokens=None):
    """Prune the vocabulary of several models of one tokenizer to the same tokens.

    Args:
        models: a list of them.
        tokenizer, texts, keep_tokens: as in `prune_vocabulary`.

    Returns:
        The smaller models, and their tokenizer.

    Raises:
        InputError: as in `prune_vocabulary`.
    """
    if not isinstance(tokenizer, Tokenizer):
        raise InputError(
            f"The tokens of a {type(tokenizer).__name__} are not pruned; give a model whose "
            "tokenizer is WordPiece, byte-level BPE or a unigram model."
        )
    always = set()
    for model in models:
        config = config_of(model)
        if config.adaptive_softmax:
            raise InputError(
                f"The tokens of a {model.name} stand in clusters by frequency, which are not "
                "pruned; give a model of another family."
            )
        if getattr(config, "target_vocabulary_size", None):
            raise InputError(
                f"The {model.name} writes tokens of a vocabulary of its own, which are not "
                "pruned; give a model of one vocabulary."
            )
        check_vocabulary(tokenizer, model)
        # RoBERTa's positions begin after the padding id, so that id must not change.
        always |= {*range(config.pad_token_id + 1)} if isinstance(config, RobertaConfig) else set()
        always.update(_token_ids(config).values())
    kept = tokens_to_keep(tokenizer, texts, keep_tokens, always)
    tokens = tokenizer.tokens_by_id()
    pruned = _with_tokens(tokenizer, [tokens[i] for i in kept])
    return [_with_rows(model, kept) for model in models], pruned


def _token_ids(config):
    """Return {field: id} for the fields of `TOKEN_IDS` that a config has."""
    return {name: getattr(config, name) for name in TOKEN_IDS if hasattr(config, name)}


def _with_rows(model, kept):
    """Build the model with the rows of the tokens `kept` alone, a sorted list of ids."""
    config = config_of(model)
    ids = {name: kept.index(i) for name, i in _token_ids(config).items()}
    smaller = rebuild(model, dataclasses.replace(config, vocabulary_size=len(kept), **ids))
    shapes = {weight.path: weight.shape for weight in smaller.weights}

    def cut(path, value):
        for axis, size in enumerate(shapes[path]):
            if size != value.shape[axis]:
                return np.take(value, kept, axis)
        return value

    copy_weights(model, smaller, cut)
    return smaller


def tokens_to_keep(tokenizer, texts, keep_tokens=None, always=()):
    """Return the ids that stay when a vocabulary is pruned to a corpus.

    Args:
        tokenizer, texts, keep_tokens: as in `prune_vocabulary`.
        always: further ids that stay.

    Returns:
        A sorted list of ids.

    Raises:
        InputError: as in `prune_vocabulary`.
    """
    texts = as_texts(texts)
    if not texts:
        raise InputError("The corpus has no texts; give some that are like those to come.")
    tokens = tokenizer.tokens_by_id()
    ids = {token: i for i, token in enumerate(tokens)}
    counts = np.bincount(tokenizer.encode(texts).token_ids, minlength=len(tokens))
    made_from = _made_from(tokenizer, ids)
    kept = {ids[token] for token in _special_tokens(tokenizer) if token in ids} | {*always}
    kept |= {i for i in _needed_by_kind(tokenizer, ids) if i is not None}
    if keep_tokens is not None and keep_tokens < len(kept):
        raise InputError(
            f"keep_tokens={keep_tokens} is below the {len(kept)} tokens that every text needs "
            f"(special ones{' and bytes' if made_from else ''}); give more."
        )
    room = len(tokens) if keep_tokens is None else keep_tokens - len(kept)
    frequent, characters = _character_ids(tokens, ids, counts)
    # Characters take at most half of the room, to leave some for words.
    first = characters[: min(frequent, room // 2)]
    for i in _unknown_words_pieces(tokenizer, ids, texts):
        counts[i] += 1
    by_count = np.argsort(-counts, kind="stable")
    for i in (*first, *by_count[: np.count_nonzero(counts)].tolist(), *characters):
        new = _closure(i, made_from) - kept
        if keep_tokens is None or len(kept) + len(new) <= keep_tokens:
            kept |= new
    return sorted(kept)


def compare_tokenizers(tokenizer, pruned, texts):
    """Compare the tokens of texts before and after pruning.

    Args:
        tokenizer: before.
        pruned: after.
        texts: a list of strings.

    Returns:
        A dict: `tokens`, `tokens_a_word` and `unknown_share`, each a pair of before and after, and
        `texts_with_other_tokens`, the share of texts whose tokens changed, a tuple of one.
    """
    before, after = tokenizer.tokens_by_id(), pruned.tokens_by_id()
    new_ids = {token: i for i, token in enumerate(after)}
    moved = np.array([new_ids.get(token, -1) for token in before], "int32")
    pairs = zip(tokenizer.encode(texts), pruned.encode(texts), strict=True)
    changed = sum(moved[old.token_ids].tolist() != new.token_ids for old, new in pairs)
    fits = [tokenizer_statistics(t, texts) for t in (tokenizer, pruned)]
    return {
        "tokens": (len(before), len(after)),
        "tokens_a_word": tuple(tokens for tokens, _ in fits),
        "unknown_share": tuple(unknown for _, unknown in fits),
        "texts_with_other_tokens": (changed / len(texts),),
    }


def compare_models(model, smaller):
    """Return the `parameters` and `float32_bytes` before and after, a dict of pairs."""
    sizes = count_parameters(model), count_parameters(smaller)
    return {"parameters": sizes, "float32_bytes": tuple(4 * size for size in sizes)}


def texts_of(examples):
    """Return all texts of a task's examples, a list; words are joined by spaces."""
    if hasattr(examples, "sentences"):
        # Even the first word gets a space before it, since byte-level BPE reads words so.
        return [
            sentence if isinstance(sentence, str) else "".join(f" {word}" for word in sentence)
            for sentence in examples.sentences
        ]
    if hasattr(examples, "endings"):
        return [*examples.prompts, *itertools.chain.from_iterable(examples.endings)]
    if hasattr(examples, "contexts"):
        return [*examples.questions, *dict.fromkeys(examples.contexts)]
    return [*examples.texts, *(examples.pairs or [])]


def _content(tokenizer):
    """Return the JSON content of a tokenizer's engine."""
    return json.loads(tokenizer.to_json())


def _special_tokens(tokenizer):
    if isinstance(tokenizer, WordPieceTokenizer):
        return SPECIAL_TOKENS
    return tokenizer.special_tokens.tokens.values()


def _needed_by_kind(tokenizer, ids):
    """Return the ids, beside special tokens, that tokenization depends on."""
    if isinstance(tokenizer, ByteLevelBpeTokenizer):
        return [ids.get(byte) for byte in tokenizers.pre_tokenizers.ByteLevel.alphabet()]
    if isinstance(tokenizer, UnigramTokenizer):
        # The score of unknown pieces is derived from the lowest score.
        pieces = _content(tokenizer)["model"]["vocab"]
        return [min(range(len(pieces)), key=lambda i: pieces[i][1])]
    return []


def _character_ids(tokens, ids, counts):
    """Compute the ids of single characters: common ones, then those of the corpus by frequency.

    Returns:
        The number of ids that make up `CHARACTER_SHARE` of the corpus, and all ids.
    """
    found = collections.Counter()
    for i in np.flatnonzero(counts):
        for character in tokens[i].removeprefix("##"):
            found[character] += counts[i]
    left = CHARACTER_SHARE * found.total()
    characters = dict.fromkeys(COMMON_CHARACTERS, True)
    for character, count in found.most_common():
        characters.setdefault(character, left > 0)
        left -= count
    spellings = [
        (ids[start + c], is_frequent)
        for c, is_frequent in characters.items()
        for start in ("", "##", "▁")
        if start + c in ids
    ]
    return sum(is_frequent for _, is_frequent in spellings), [i for i, _ in spellings]


def _unknown_words_pieces(tokenizer, ids, texts):
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
    found = set()
    for word in words:
        pieces = _greedy_pieces(word, ids)
        if sum(map(len, pieces)) < len(word) <= MAX_CHARS_PER_WORD:
            found |= {ids[p if i == 0 else f"##{p}"] for i, p in enumerate(pieces)}
    return found


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


def _made_from(tokenizer, ids):
    """Return {id: the ids it is merged from} for byte-level BPE; empty for other tokenizers."""
    made = collections.defaultdict(set)
    if isinstance(tokenizer, ByteLevelBpeTokenizer):
        for left, right in _merges(tokenizer):
            made[ids[left + right]] |= {ids[left], ids[right]}
    return dict(made)


def _merges(tokenizer):
    merges = _content(tokenizer)["model"]["merges"]
    return [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in merges]


def _closure(i, made_from):
    """Return the set of an id and all ids that it is merged from, recursively."""
    found, left = set(), [i]
    while left:
        i = left.pop()
        if i not in found:
            found.add(i)
            left += made_from.get(i, ())
    return found


def _with_tokens(tokenizer, tokens):
    """Build a tokenizer with some of another's tokens, in the order of their new ids."""
    if isinstance(tokenizer, WordPieceTokenizer):
        return WordPieceTokenizer(
            tokens, tokenizer.lowercase, tokenizer.strip_accents, tokenizer.split_cjk
        )
    if isinstance(tokenizer, UnigramTokenizer):
        scores = dict(_content(tokenizer)["model"]["vocab"])
        return UnigramTokenizer(
            # Some families add [MASK] later, so it has no score.
            [(token, scores[token]) for token in tokens if token in scores],
            tokenizer.family,
            tokenizer.lowercase,
            tokenizer.keep_accents,
            tokenizer.character_map,
        )
    ids = {token: i for i, token in enumerate(tokens)}
    merges = [(a, b) for a, b in _merges(tokenizer) if {a, b, a + b} <= ids.keys()]
    return ByteLevelBpeTokenizer(ids, merges, tokenizer.family, tokenizer.add_prefix_space)
