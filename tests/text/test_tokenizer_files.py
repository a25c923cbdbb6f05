"""Folders of tokenizers."""

import json

import pytest

from tfnlp.text import load_tokenizer, train_tokenizer
from tfnlp.utils.errors import InputError

TEXTS = [
    "The quick brown fox jumps over the lazy dog .",
    "정말 재미있는 영화였다 ! 다시 보고 싶다",
    "a naïve café , don't you think ?  two  spaces",
    "",
] * 5


FAMILIES = ("bert", "gpt2", "roberta", "deberta", "albert", "xlnet", "deberta-v2")


KINDS = {"bert": "wordpiece"} | dict.fromkeys(("gpt2", "roberta", "deberta"), "bpe")


@pytest.fixture(scope="module")
def tokenizers():
    """A tokenizer of each family."""
    return {
        family: train_tokenizer(TEXTS, KINDS.get(family, "unigram"), 330, family)[0]
        for family in FAMILIES
    }


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="nope is no folder"):
        load_tokenizer(tmp_path / "nope")


@pytest.mark.parametrize("first", FAMILIES)
@pytest.mark.parametrize("second", FAMILIES)
def test_a_second_tokenizer_takes_the_place_of_the_first(first, second, tokenizers, tmp_path):
    for name in ("special_tokens_map.json", "added_tokens.json", "notes.txt"):
        (tmp_path / name).write_text("{}")
    tokenizers[first].save(tmp_path)
    tokenizers[second].save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert type(loaded) is type(tokenizers[second])
    assert loaded.to_json() == tokenizers[second].to_json()
    own = {
        "wordpiece": {"vocab.txt"},
        "bpe": {"vocab.json", "merges.txt"},
    }.get(KINDS.get(second), set())
    own |= {"tokenizer.json", "tokenizer_config.json", "notes.txt"}
    assert {path.name for path in tmp_path.iterdir()} == own


@pytest.mark.parametrize("family", FAMILIES)
def test_a_models_config_is_left_alone(family, tokenizers, tmp_path):
    config = json.dumps({"model_type": "deberta", "hidden_size": 12})
    (tmp_path / "config.json").write_text(config)
    if family in ("bert", "deberta"):
        tokenizers[family].save(tmp_path)
        assert type(load_tokenizer(tmp_path)) is type(tokenizers[family])
    else:
        with pytest.raises(
            InputError, match=f"family 'deberta' and the tokenizer one for '{family}'"
        ):
            tokenizers[family].save(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
    assert (tmp_path / "config.json").read_text() == config


def test_wordpiece_is_known_by_its_class_or_its_file(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "roberta"}')
    for name in ("tokenizer_config.json", "vocab.txt"):  # either is enough
        kept = (tmp_path / name).read_text()
        (tmp_path / name).unlink()
        assert load_tokenizer(tmp_path).vocabulary == tokenizer.vocabulary
        (tmp_path / name).write_text(kept)
