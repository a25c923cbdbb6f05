"""Folders of tokenizers."""

import itertools
import json

import pytest

from tests.text.family_tokenizers import FAMILIES, KINDS, tokenizer_of
from tfnlp.text import ByteLevelBpeTokenizer, WordPieceTokenizer, load_tokenizer
from tfnlp.utils.errors import InputError

FILES = {"wordpiece": {"vocab.txt"}, "bpe": {"vocab.json", "merges.txt"}, "unigram": set()}


@pytest.mark.parametrize(
    ("first", "second"), [*itertools.pairwise(FAMILIES), (FAMILIES[-1], "bert"), ("bert", "bert")]
)
def test_a_second_tokenizer_takes_the_place_of_the_first(first, second, tmp_path):
    for name in ("special_tokens_map.json", "added_tokens.json", "notes.txt"):
        (tmp_path / name).write_text("{}")
    tokenizer_of(first).save(tmp_path)
    tokenizer_of(second).save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert type(loaded) is type(tokenizer_of(second))
    assert loaded.to_json() == tokenizer_of(second).to_json()
    own = set() if second == "modernbert" else FILES[KINDS[second]]
    own |= {"tokenizer.json", "tokenizer_config.json", "notes.txt"}
    assert {path.name for path in tmp_path.iterdir()} == own


def test_a_models_config_is_left_alone(tmp_path):
    config = json.dumps({"model_type": "deberta", "hidden_size": 12})
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(InputError, match="family 'deberta' and the tokenizer one for 'xlnet'"):
        tokenizer_of("xlnet").save(tmp_path)  # whose third segment no other body has
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
    tokenizer_of("albert").save(tmp_path)
    assert load_tokenizer(tmp_path).to_json() == tokenizer_of("albert").to_json()
    assert (tmp_path / "config.json").read_text() == config


def test_settings_are_those_of_the_engines_file_unless_the_config_has_others(tmp_path):
    WordPieceTokenizer(tokenizer_of("bert").vocabulary, False, True, False).save(tmp_path / "a")
    whole = json.loads(tokenizer_of("roberta").to_json())["model"]
    merges = map(tuple, whole["merges"])
    ByteLevelBpeTokenizer(whole["vocab"], merges, "roberta", True).save(tmp_path / "b")
    for path in ("a/vocab.txt", "a/tokenizer_config.json", "b/vocab.json"):
        (tmp_path / path).unlink()
    (tmp_path / "b/tokenizer_config.json").write_text("{}")
    loaded = WordPieceTokenizer.from_folder(tmp_path / "a")
    assert (loaded.lowercase, loaded.strip_accents, loaded.split_cjk) == (False, True, False)
    assert ByteLevelBpeTokenizer.from_folder(tmp_path / "b", "roberta").add_prefix_space
    (tmp_path / "a/tokenizer_config.json").write_text('{"do_lower_case": true}')
    (tmp_path / "b/tokenizer_config.json").write_text('{"add_prefix_space": null}')
    loaded = WordPieceTokenizer.from_folder(tmp_path / "a")
    assert (loaded.lowercase, loaded.split_cjk) == (True, False)
    assert not ByteLevelBpeTokenizer.from_folder(tmp_path / "b", "roberta").add_prefix_space


def test_wordpiece_is_known_by_its_class_or_its_file(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "roberta"}')
    for name in ("tokenizer_config.json", "vocab.txt"):  # either is enough
        kept = (tmp_path / name).read_text()
        (tmp_path / name).unlink()
        assert load_tokenizer(tmp_path).vocabulary == tokenizer.vocabulary
        (tmp_path / name).write_text(kept)
