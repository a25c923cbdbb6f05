"""Byte-level BPE from vocab.json and merges.txt."""

import json

import pytest

from tfnlp.text import load_tokenizer, train_byte_level_bpe, train_unigram
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


def test_bpe_from_vocabulary_and_merges_alone(tmp_path):
    tokenizer = train("roberta", TEXTS, 400)
    saved(tokenizer, tmp_path, "roberta")
    expected = [e.token_ids for e in tokenizer.encode(TEXTS)]
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).unlink()
    assert [e.token_ids for e in load_tokenizer(tmp_path).encode(TEXTS)] == expected
    (tmp_path / "merges.txt").write_text("#version: 0.2\nĠ t h\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"merges\.txt, line 2"):
        load_tokenizer(tmp_path)
    (tmp_path / "merges.txt").write_text("#version: 0.2\n영 화\n", encoding="utf-8")
    with pytest.raises(InputError, match="do not belong to the vocabulary"):
        load_tokenizer(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(InputError, match=r"merges\.txt is missing"):
        load_tokenizer(tmp_path)
