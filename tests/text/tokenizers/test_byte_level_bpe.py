"""Byte-level BPE from its files, and vocabularies of characters."""

import pytest

from tests.text.family_tokenizers import HARD_TEXTS, ids_of, saved, trained
from tfnlp.text import load_tokenizer, train_byte_level_bpe, train_characters, train_tokenizer
from tfnlp.utils.errors import InputError

CHARACTERS = ["영화가 참 좋다 é", "한글 가나다 영화 😀"]


def test_bpe_from_vocabulary_and_merges_alone(tmp_path):
    tokenizer = trained("roberta", HARD_TEXTS, 400)
    saved(tokenizer, tmp_path, "roberta")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).unlink()
    assert ids_of(load_tokenizer(tmp_path), HARD_TEXTS) == ids_of(tokenizer, HARD_TEXTS)
    for line in ("Ġ t h", "영 화"):  # three tokens, and unknown ones
        (tmp_path / "merges.txt").write_text(f"#version: 0.2\n{line}\n", encoding="utf-8")
        with pytest.raises(InputError, match=f"{tmp_path}: .*do not belong to the vocabulary"):
            load_tokenizer(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(InputError, match=r"merges\.txt does not exist"):
        load_tokenizer(tmp_path)


def test_training_is_deterministic_and_bad_sizes_are_named():
    first, second = (train_byte_level_bpe(HARD_TEXTS, 400).to_json() for _ in range(2))
    assert first == second
    for train, size, least in ((train_byte_level_bpe, 200, 261), (train_characters, 256, 257)):
        with pytest.raises(InputError, match=f"vocabulary_size={size} must be at least {least}"):
            train(HARD_TEXTS, size)


def pieces(tokenizer, text):
    """The texts of a text's tokens, parts of a character by their names."""
    ids = tokenizer.encode([text])[0].token_ids
    assert tokenizer.decode(ids) == text
    decoded = [(tokenizer.decode([i]), tokenizer.token(i)) for i in ids]
    return [name if "\ufffd" in text else text for text, name in decoded]


def test_each_character_is_a_token_and_nothing_is_lost(tmp_path):
    tokenizer = train_characters(CHARACTERS, 1000)
    tokenizer.save(tmp_path)
    for one in (tokenizer, load_tokenizer(tmp_path)):
        assert pieces(one, "Café 영화가\n😀!") == list("Café 영화가\n😀!")
    # Of a syllable that the texts lack, the bytes: EC 81 98.
    assert pieces(tokenizer, "쁘") == ["ì", "ģ", "ĺ"]


def test_the_most_frequent_characters_fill_the_vocabulary():
    full = train_characters(CHARACTERS, 1000)
    # 256 bytes, the end and 8 more, of which 가, twice in the texts, takes two.
    small = train_characters(CHARACTERS, 265)
    assert small.vocabulary_size <= 265 < full.vocabulary_size
    assert pieces(small, "가다")[0] == "가"
    assert len(pieces(small, "참")) > 1 == len(pieces(full, "참"))


def test_for_ascii_characters_are_bytes():
    texts = ["the film is fine\n", "and the cast is dull"]
    characters, family = train_tokenizer(texts, "characters", 2000)
    bytes_alone = train_tokenizer(texts, "bpe", 257, "gpt2")[0]
    assert family == "gpt2" and characters.vocabulary_size == 257
    ids = [list(one.encode(texts)[0].token_ids) for one in (characters, bytes_alone)]
    assert ids[0] == ids[1] and len(ids[0]) == len(texts[0])
