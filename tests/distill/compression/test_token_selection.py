"""Tokens that stay in a pruned vocabulary: the frequent ones, and those that every text needs."""

import json

import pytest

from distill.compression.token_selection import tokens_to_keep
from distill.learning.student import with_vocabulary
from tfnlp.models import RobertaConfig
from tfnlp.text import ByteLevelBpeTokenizer, WordPieceTokenizer
from tfnlp.utils.errors import InputError


def test_rare_tokens_go_first():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "film", "plot", "dull", "cast"]
    tokenizer = WordPieceTokenizer(tokens)
    corpus = ["film cast cast dull", "cast film"]
    assert tokens_to_keep(tokenizer, corpus) == [0, 1, 2, 3, 4, 5, 7, 8]
    assert tokens_to_keep(tokenizer, corpus, 7) == [0, 1, 2, 3, 4, 5, 8]
    assert tokens_to_keep(tokenizer, corpus, 6) == [0, 1, 2, 3, 4, 8]
    assert tokens_to_keep(tokenizer, corpus, 5) == [0, 1, 2, 3, 4]


def test_characters_take_half_of_the_room():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcd", "film", "plot"]
    kept = tokens_to_keep(WordPieceTokenizer(tokens), ["film plot"], 9)
    assert [tokens[i] for i in kept[5:]] == ["a", "b", "film", "plot"]


def test_too_few_tokens_are_refused(texts, tokenizers):
    tokenizer = tokenizers["wordpiece", None]
    for of, given, options, words in (
        (tokenizer, (texts, 4), {}, "below the 5"),
        (tokenizers["bpe", "roberta"], (texts, 260), {}, "260 .* 261"),
        (tokenizer, ([],), {}, "no texts"),
        (tokenizer, (), {}, "keep_tokens"),
        (tokenizer, (texts,), {"scripts": ["Latin", "Hangeul"]}, "Hangeul"),
    ):
        with pytest.raises(InputError, match=words):
            tokens_to_keep(of, *given, **options)


def test_ids_with_a_gap_are_refused(texts, tokenizers):
    """As in a vocab.json without one of its tokens: later rows are of other tokens."""
    whole = json.loads(tokenizers["bpe", "roberta"].to_json())["model"]
    vocabulary = {token: i + (i > 300) for token, i in whole["vocab"].items()}
    holed = ByteLevelBpeTokenizer(vocabulary, [tuple(merge) for merge in whole["merges"]])
    with pytest.raises(InputError, match="the id 301"):
        tokens_to_keep(holed, texts[:4])
    with pytest.raises(InputError, match="the id 301"):
        with_vocabulary(RobertaConfig(num_layers=1), holed)
