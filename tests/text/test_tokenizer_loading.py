"""Training of tokenizers, and their choice by family."""

import json

import pytest

from tests.text.family_tokenizers import HARD_TEXTS, ids_of, saved, trained
from tfnlp.text import WordPieceTokenizer, load_tokenizer, train_byte_level_bpe, train_unigram
from tfnlp.text.tokenizer_loading import tokenizer_statistics, train_tokenizer
from tfnlp.utils.errors import InputError


def test_tokenizer_statistics():
    wordpiece = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "film", "##s"])
    # a film ##s / [UNK] a: 5 tokens of 4 words, one of them unknown.
    assert tokenizer_statistics(wordpiece, ["A films", "영화 a"]) == (5 / 4, 1 / 5)
    assert tokenizer_statistics(wordpiece, [""]) == (0, 0)
    texts = ["the film is dull", "정말 좋다 영화"] * 3
    unigram, bpe = train_unigram(texts, 60, "xlnet"), train_byte_level_bpe(texts, 300)
    assert tokenizer_statistics(unigram, texts)[1] == tokenizer_statistics(bpe, ["쀍"])[1] == 0
    assert tokenizer_statistics(unigram, ["쀍"]) == (2, 0.5)  # the space before it is known


def test_a_family_with_another_kind_of_tokenizer_is_named():
    with pytest.raises(InputError, match=r"^family=bert has no tokenizer of kind=bpe"):
        train_tokenizer(HARD_TEXTS, "bpe", 300, "bert")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("transfo-xl", "no tokenizer for the family 'transfo-xl'"),
        ("openai-gpt", "no tokenizer for the family 'openai-gpt'"),
        ("marian", r"source\.spm does not exist"),
    ],
)
def test_a_family_without_a_tokenizer_of_its_own_takes_any(model, message, tmp_path):
    """Bytes for a Transformer-XL, and no GPT's own, nor what another family's model has."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model}))
    with pytest.raises(InputError, match=message):
        load_tokenizer(tmp_path)
    for family in ("bert", "gpt2", "roberta", "albert", "xlnet"):
        tokenizer = trained(family, HARD_TEXTS, 300)
        tokenizer.save(tmp_path)
        found = load_tokenizer(tmp_path)
        assert type(found) is type(tokenizer) and found.family == tokenizer.family
        assert ids_of(found, HARD_TEXTS) == ids_of(tokenizer, HARD_TEXTS)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "roberta"}))
    with pytest.raises(InputError, match="the family 'roberta' and the tokenizer one for 'xlnet'"):
        tokenizer.save(tmp_path)


@pytest.mark.parametrize(
    ("family", "model", "kind"),
    [("roberta", "albert", "Unigram"), ("albert", "gpt2", "BPE"), ("albert", "bert", "WordPiece")],
)
def test_a_tokenizer_of_another_kind_is_named(family, model, kind, tmp_path):
    saved(trained(family, HARD_TEXTS, 300), tmp_path, model)
    for name in ("vocab.json", "tokenizer_config.json"):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(InputError, match=rf"tokenizer\.json holds no {kind} tokenizer"):
        load_tokenizer(tmp_path)


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[", "]", "e", "##1", "kim"]


def test_a_class_that_tfnlp_lacks_is_refused_by_name(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    for name in ("BertJapaneseTokenizer", "RetriBertTokenizer"):
        (tmp_path / "tokenizer_config.json").write_text(f'{{"tokenizer_class": "{name}"}}')
        with pytest.raises(InputError, match=name):
            load_tokenizer(tmp_path)
    for name in ("BertTokenizerFast", "PreTrainedTokenizerFast", "TokenizersBackend"):
        (tmp_path / "tokenizer_config.json").write_text(f'{{"tokenizer_class": "{name}"}}')
        assert load_tokenizer(tmp_path).tokens("kim") == ["kim"]
