"""Training of tokenizers, and their choice by family."""

import json

import pytest

from tfnlp.text import (
    UnigramTokenizer,
    WordPieceTokenizer,
    load_tokenizer,
    train_byte_level_bpe,
    train_unigram,
)
from tfnlp.text.tokenizer_loading import tokenizer_statistics
from tfnlp.utils.errors import InputError

TEXTS = [
    "The quick brown fox jumps over the lazy dog .",
    "정말 재미있는 영화였다 ! 다시 보고 싶다",
    "a naïve café , don't you think ?  two  spaces\tand a tab",
    "<unk> @-@ 1,000 ``quoted'' ½ ﬁne 東京 😀",
    "",
    "  leading and trailing  ",
] * 3


def train(family, texts, size):
    if family in ("gpt2", "roberta", "deberta"):
        return train_byte_level_bpe(texts, size, family)
    return train_unigram(texts, size, family)


def saved(tokenizer, folder, family):
    tokenizer.save(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": family}))
    return folder


def test_training_is_deterministic_and_bad_sizes_are_named():
    first, second = (train_byte_level_bpe(TEXTS, 400).settings() for _ in range(2))
    assert first == second
    with pytest.raises(InputError, match="at least 261"):
        train_byte_level_bpe(TEXTS, 200)
    with pytest.raises(InputError, match="vocabulary_size=12 is less than the characters"):
        train_unigram(TEXTS, 12, "xlnet")
    with pytest.raises(InputError, match="lack"):
        UnigramTokenizer([("a", -1.0)], "albert")


def test_tokenizer_statistics():
    wordpiece = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "film", "##s"])
    # a film ##s / [UNK] a: 5 tokens of 4 words, one of them unknown.
    assert tokenizer_statistics(wordpiece, ["A films", "영화 a"]) == (5 / 4, 1 / 5)
    assert tokenizer_statistics(wordpiece, [""]) == (0, 0)
    texts = ["the film is dull", "정말 좋다 영화"] * 3
    unigram, bpe = train_unigram(texts, 60, "xlnet"), train_byte_level_bpe(texts, 300)
    assert tokenizer_statistics(unigram, texts)[1] == tokenizer_statistics(bpe, ["쀍"])[1] == 0
    assert tokenizer_statistics(unigram, ["쀍"]) == (2, 0.5)  # the space before it is known


@pytest.mark.parametrize("model", ["transfo-xl", "openai-gpt"])
def test_a_family_without_a_tokenizer_of_its_own_takes_any(model, tmp_path):
    """Bytes for a Transformer-XL, and no GPT's own, nor what another family's model has."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model}))
    with pytest.raises(InputError, match=f"no tokenizer for the family '{model}'"):
        load_tokenizer(tmp_path)
    for family in ("gpt2", "roberta", "xlnet"):
        tokenizer = train(family, TEXTS, 300)
        tokenizer.save(tmp_path)
        found = load_tokenizer(tmp_path)
        assert type(found) is type(tokenizer) and found.family == family
        assert [e.token_ids for e in found.encode(TEXTS)] == [
            e.token_ids for e in tokenizer.encode(TEXTS)
        ]
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "roberta"}))
    with pytest.raises(InputError, match="the family 'roberta' and the tokenizer one for 'xlnet'"):
        tokenizer.save(tmp_path)


def test_a_tokenizer_of_another_kind_is_named(tmp_path):
    saved(train("roberta", TEXTS, 300), tmp_path, "albert")
    with pytest.raises(InputError, match="not a SentencePiece unigram tokenizer"):
        load_tokenizer(tmp_path)
    saved(train("albert", TEXTS, 200), tmp_path / "b", "gpt2")
    with pytest.raises(InputError, match="not a byte-level BPE"):
        load_tokenizer(tmp_path / "b")
