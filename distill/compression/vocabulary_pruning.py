"""Vocabulary pruning: keep the tokens that a corpus needs, and renumber them."""

import dataclasses
import itertools

import numpy as np

from distill.compression.rebuild import rebuild
from distill.compression.token_selection import bpe_merges, engine_content, tokens_to_keep
from tfnlp.models import RobertaConfig, check_vocabulary, config_of
from tfnlp.quantization.fake_quantization import count_parameters
from tfnlp.text import (
    ByteFallbackBpeTokenizer,
    ByteLevelBpeTokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
)
from tfnlp.text.tokenizers.tokenizer_loading import tokenizer_statistics
from tfnlp.utils.errors import InputError

KINDS = (ByteFallbackBpeTokenizer, ByteLevelBpeTokenizer, UnigramTokenizer, WordPieceTokenizer)
# Config fields that hold token ids.
TOKEN_IDS = ("pad_token_id", "start_token_id", "end_token_id")


def prune_vocabulary(model, tokenizer, texts=None, keep_tokens=None, scripts=()):
    """Drop the tokens that a corpus or some scripts do not need from a tokenizer and its model.

    Special tokens, single characters (bytes, for BPE), the tokens of the corpus and those of the
    scripts stay, in their order. Without `keep_tokens` all of them stay. The texts,
    and any text of these scripts alone, are then the same tokens as before, and the model's
    outputs on them do not change.

    Args:
        model: from `tfnlp.models.build_model` or `load_model`, with any head.
        tokenizer: the model's.
        texts: the corpus, a list of strings; None for none.
        keep_tokens: the most tokens to keep, the most frequent of the corpus first, then those of
            the scripts (of all without scripts and texts) in order of their ids, which begin with
            the commonest; None for no limit.
        scripts: names of scripts of Unicode, such as "Hangul" and "Latin", whose tokens stay.

    Returns:
        The smaller model, and its tokenizer.

    Raises:
        InputError: if nothing says what stays, the corpus has no texts, a script is unknown,
            `keep_tokens` is below the tokens that must stay, the tokenizer's ids have gaps, the
            tokenizer is not one of `tfnlp.text`'s own kinds, or the model has an adaptive softmax
            or another vocabulary for its targets.
    """
    (smaller,), pruned = prune_vocabularies([model], tokenizer, texts, keep_tokens, scripts)
    return smaller, pruned


def prune_vocabularies(models, tokenizer, texts=None, keep_tokens=None, scripts=()):
    """Prune the vocabulary of several models of one tokenizer to the same tokens.

    Returns the smaller models, and their tokenizer; arguments and errors as in `prune_vocabulary`.
    """
    kept, pruned = choose_tokens(models, tokenizer, texts, keep_tokens, scripts)
    return [keep_rows(model, kept) for model in models], pruned


def choose_tokens(models, tokenizer, texts=None, keep_tokens=None, scripts=()):
    """Choose the tokens that models of one tokenizer keep.

    Returns their ids, a sorted list, and the tokenizer of them alone; arguments and errors as in
    `prune_vocabulary`.
    """
    if not isinstance(tokenizer, KINDS):
        raise InputError(
            f"The tokens of a {type(tokenizer).__name__} cannot be pruned; give a model whose "
            "tokenizer is WordPiece, BPE or a unigram model."
        )
    required = set()
    for model in models:
        config = config_of(model)
        if config.adaptive_softmax or getattr(config, "target_vocabulary_size", None):
            raise InputError(
                f"The tokens of this {model.name} are clustered by frequency, or of two "
                "vocabularies, and so cannot be pruned; give another model."
            )
        if getattr(config, "word_ngrams", 1) > 1:
            raise InputError(
                f"The n-grams of this {model.name} are known by their tokens' ids, which pruning "
                "changes; give a model with word_ngrams=1."
            )
        check_vocabulary(tokenizer, model)
        # RoBERTa's positions begin after the padding id, so that id must not change.
        if isinstance(config, RobertaConfig):
            required |= {*range(config.pad_token_id + 1)}
        required.update(_token_ids(config).values())
    kept = tokens_to_keep(tokenizer, texts, keep_tokens, scripts, required)
    tokens = tokenizer.tokens_by_id()
    # Added tokens that follow the vocabulary do so again, in the same order.
    pruned = _with_tokens(tokenizer, [tokens[i] for i in kept if i < tokenizer.first_added_id])
    for token in tokenizer.added_tokens:
        pruned.add_token(token)
    return kept, pruned


def _token_ids(config):
    """Return {field: id} for the fields of `TOKEN_IDS` that a config has."""
    return {name: getattr(config, name) for name in TOKEN_IDS if hasattr(config, name)}


def keep_rows(model, kept):
    """Build the model with the rows of the tokens `kept` alone, the ids of `choose_tokens`."""
    config = config_of(model)
    ids = {name: kept.index(i) for name, i in _token_ids(config).items()}

    def cut(weight, value):
        for axis, size in enumerate(weight.shape):
            if size != value.shape[axis]:
                return np.take(value, kept, axis)
        return value

    return rebuild(model, dataclasses.replace(config, vocabulary_size=len(kept), **ids), cut)


def compare_tokenizers(tokenizer, pruned, texts):
    """Compare the tokens of texts before and after pruning.

    Returns:
        A dict: `tokens`, `tokens_a_word` and `unknown_share`, each a pair of before and after, and
        `texts_with_other_tokens`, the share of texts whose tokens changed, a tuple of one.
    """
    before, after = tokenizer.tokens_by_id(), pruned.tokens_by_id()
    new_ids = {token: i for i, token in enumerate(after)}
    renumbered = np.array([new_ids.get(token, -1) for token in before], "int32")
    pairs = zip(tokenizer.encode(texts), pruned.encode(texts), strict=True)
    changed = sum(renumbered[old.token_ids].tolist() != new.token_ids for old, new in pairs)
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


def task_texts(examples):
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
    if not isinstance(examples.texts[0], str):  # groups of texts
        return [*itertools.chain.from_iterable(examples.texts)]
    return [*examples.texts, *(getattr(examples, "pairs", None) or [])]


def _with_tokens(tokenizer, tokens):
    """Build a tokenizer with some of another's tokens, in the order of their new ids."""
    if isinstance(tokenizer, WordPieceTokenizer):
        return WordPieceTokenizer(
            tokens, tokenizer.lowercase, tokenizer.strip_accents, tokenizer.split_cjk
        )
    if isinstance(tokenizer, UnigramTokenizer):
        scores = dict(tokenizer.pieces)
        return UnigramTokenizer(
            # Some families add [MASK] later, so it has no score.
            [(token, scores[token]) for token in tokens if token in scores],
            tokenizer.family,
            lowercase=tokenizer.lowercase,
            keep_accents=tokenizer.keep_accents,
            character_map=tokenizer.character_map,
            rules=tokenizer.rules,
        )
    ids = {token: i for i, token in enumerate(tokens)}
    pairs = [(a, b) for a, b in bpe_merges(tokenizer) if {a, b, a + b} <= ids.keys()]
    if isinstance(tokenizer, ByteFallbackBpeTokenizer):
        return ByteFallbackBpeTokenizer(_renumbered(engine_content(tokenizer), ids, pairs))
    return ByteLevelBpeTokenizer(ids, pairs, tokenizer.family, tokenizer.add_prefix_space)


def _renumbered(content, ids, merges):
    """Return the content of a tokenizer.json with other ids of its tokens, and other merges."""
    added = [entry for entry in content["added_tokens"] if entry["content"] in ids]
    added = [entry | {"id": ids[entry["content"]]} for entry in added]
    template = (content["post_processor"] or {}).get("special_tokens", {})
    for entry in template.values():
        entry["ids"] = [ids[token] for token in entry["tokens"]]
    model = content["model"] | {"vocab": ids, "merges": merges}
    return content | {"added_tokens": added, "model": model}
