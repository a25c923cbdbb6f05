"""A vocabulary of characters."""

import pytest

from tfnlp.text import load_tokenizer, train_characters, train_tokenizer
from tfnlp.utils.errors import InputError

TEXTS = ["영화가 참 좋다 é", "한글 가나다 영화 😀"]


def pieces(tokenizer, text):
    """The texts of a text's tokens, parts of a character by their names."""
    ids = tokenizer.encode([text])[0].token_ids
    assert tokenizer.decode(ids) == text
    return [
        tokenizer.token(i) if "\ufffd" in tokenizer.decode([i]) else tokenizer.decode([i])
        for i in ids
    ]


def test_each_character_is_a_token_and_nothing_is_lost(tmp_path):
    tokenizer = train_characters(TEXTS, 1000)
    tokenizer.save(tmp_path)
    for one in (tokenizer, load_tokenizer(tmp_path)):
        assert pieces(one, "Café 영화가\n😀!") == list("Café 영화가\n😀!")
    # Of a syllable that the texts lack, the bytes: EC 81 98.
    assert pieces(tokenizer, "쁘") == ["ì", "ģ", "ĺ"]


def test_the_most_frequent_characters_fill_the_vocabulary():
    full = train_characters(TEXTS, 1000)
    # 256 bytes, the end and 8 more, of which 가, twice in the texts, takes two.
    small = train_characters(TEXTS, 265)
    assert small.vocabulary_size <= 265 < full.vocabulary_size
    assert pieces(small, "가다")[0] == "가"
    assert len(pieces(small, "참")) > 1 == len(pieces(full, "참"))
    with pytest.raises(InputError, match="vocabulary_size=256 must be at least 257"):
        train_characters(TEXTS, 256)


def test_for_ascii_characters_are_bytes():
    texts = ["the film is fine\n", "and the cast is dull"]
    characters, family = train_tokenizer(texts, "characters", 2000)
    bytes_alone = train_tokenizer(texts, "bpe", 257, "gpt2")[0]
    assert family == "gpt2" and characters.vocabulary_size == 257
    ids = [list(one.encode(texts)[0].token_ids) for one in (characters, bytes_alone)]
    assert ids[0] == ids[1] and len(ids[0]) == len(texts[0])
