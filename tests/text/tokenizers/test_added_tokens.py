"""Added tokens of folders have the ids that `transformers` gives them."""

import json

import pytest
import tokenizers
from tokenizers import AddedToken

from distill.compression import prune_vocabulary
from distill.export.mediapipe import mediapipe_differences
from distill.export.metadata import tokenizer_files
from distill.runtime.litert_backend import read_tokenizer
from tests.text.family_tokenizers import FAMILIES, ids_of, saved, theirs_of, tokenizer_of
from tfnlp.models import BertConfig, build_model
from tfnlp.text import load_tokenizer, train_unigram
from tfnlp.utils.errors import InputError

ADDED = [
    AddedToken("[E1]", special=True),
    AddedToken("covid19", normalized=True),
    AddedToken("Ünder", normalized=True),
    AddedToken("<left>", lstrip=True, normalized=False),
    AddedToken("<right>", rstrip=True, normalized=False),
    AddedToken("한", single_word=True, normalized=False),
]
TEXTS = [
    "[E1] the fox [E1] jumps",
    "[E1]the[E1][E1]",
    "COVID19 xcovid19y covid 19 covid19.",
    "under Ünder ünder U\u0308nder UNDER",
    "the <left>  fox <left> ,<right>  dog <right>!",
    "한 한국 한. 한한 영화 한",
    "",
    "  [E1]  ",
    "\u200b[E1]\ufeff covid19\n<left>\t<right>😀",
]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[", "]", "e", "##1", "kim"]


def with_added_tokens(folder, family):
    """Write a tokenizer to whose tokenizer.json tokens were added, and return the folder."""
    saved(tokenizer_of(family), folder, family)
    engine = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    engine.add_special_tokens([token for token in ADDED if token.special])
    engine.add_tokens([token for token in ADDED if not token.special])
    engine.save(str(folder / "tokenizer.json"))
    return folder


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_of_texts_with_added_tokens_are_those_of_transformers(family, tmp_path):
    folder = with_added_tokens(tmp_path / "first", family)
    theirs = theirs_of(folder, family)
    ids = [theirs(text)["input_ids"] for text in TEXTS]
    tokenizer = load_tokenizer(folder)
    assert ids_of(tokenizer, TEXTS) == ids
    for row in ids:
        assert tokenizer.decode(row) == theirs.decode(row, skip_special_tokens=True)
    saved(tokenizer, tmp_path / "second", family)
    assert ids_of(load_tokenizer(tmp_path / "second"), TEXTS) == ids
    theirs = theirs_of(tmp_path / "second", family)
    assert [theirs(text)["input_ids"] for text in TEXTS] == ids


def test_flags_of_the_settings_count_before_those_of_the_engine(tmp_path):
    folder = with_added_tokens(tmp_path, "modernbert")
    number = load_tokenizer(folder).token_id("<left>")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    left = {"content": "<left>", "lstrip": False, "normalized": False, "special": False}
    settings["added_tokens_decoder"] = {number: left}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    theirs = theirs_of(folder, "modernbert")
    ids = [theirs(text)["input_ids"] for text in TEXTS]
    assert ids_of(load_tokenizer(folder), TEXTS) == ids
    assert ids[4] != ids_of(load_tokenizer(with_added_tokens(tmp_path, "modernbert")), TEXTS)[4]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("added_tokens.json", {"[E1]": 10}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"10": {"content": "[E1]"}}}),
        ("tokenizer_config.json", {"additional_special_tokens": ["[E1]"]}),
        ("special_tokens_map.json", {"extra_special_tokens": [{"content": "[E1]"}]}),
    ],
)
def test_each_file_that_adds_tokens_is_read(file, content, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    (tmp_path / file).write_text(json.dumps(content))
    tokenizer = load_tokenizer(tmp_path)
    assert ids_of(tokenizer, ["kim[E1]"]) == [[2, 9, 10, 3]]
    assert tokenizer.vocabulary_size == 11


def test_a_token_of_the_vocabulary_that_is_added_is_no_part_of_a_word(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    assert ids_of(load_tokenizer(tmp_path), ["[e1]"]) == [[2, 5, 7, 8, 6, 3]]
    (tmp_path / "added_tokens.json").write_text('{"##1": 8}')
    assert ids_of(load_tokenizer(tmp_path), ["e##1"]) == [[2, 7, 8, 3]]


@pytest.mark.parametrize(
    ("file", "settings", "word"),
    [
        ("tokenizer.json", {"added_tokens": [{"content": "[E1]", "id": 12}]}, "12"),
        ("tokenizer.json", {"added_tokens": [{"content": "kim", "id": 3}]}, "kim"),
        ("tokenizer.json", {"added_tokens": [{"content": 5, "id": 10}]}, "read"),
        ("tokenizer.json", {"added_tokens": [{"content": "[E1]"}]}, "'id'"),
        ("tokenizer.json", {"added_tokens": [{"content": "[E1]", "id": 10.7}]}, "10.7"),
        ("tokenizer.json", {"added_tokens": [{"content": "", "id": 10}]}, "empty"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"ten": {}}}, "added tokens"),
        ("tokenizer_config.json", {"extra_special_tokens": 5}, "added tokens"),
        ("tokenizer_config.json", {"additional_special_tokens": "[E1]"}, "added tokens"),
    ],
)
def test_added_tokens_that_do_not_fit_are_refused(file, settings, word, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / file).write_text(json.dumps(settings))
    with pytest.raises(InputError, match=word):
        load_tokenizer(tmp_path)


def test_a_corpus_keeps_markers_whole_as_a_text_does(tmp_path):
    tokenizer = load_tokenizer(with_added_tokens(tmp_path, "roberta"))
    literal = tokenizer.encode(["the [E1] </s>"], literal=True)[0].token_ids
    assert tokenizer.token_id("[E1]") in literal[1:-1]
    assert tokenizer.token_id("</s>") not in literal[1:-1]


@pytest.mark.parametrize("family", ["bert", "roberta", "deberta-v2"])
def test_a_file_and_a_pruned_vocabulary_keep_added_tokens(family, tmp_path):
    tokenizer = load_tokenizer(with_added_tokens(tmp_path, family))
    in_file = read_tokenizer("file", tokenizer.settings(), tokenizer_files(tokenizer))
    assert ids_of(in_file, TEXTS) == ids_of(tokenizer, TEXTS)
    assert any("[E1]" in sentence for sentence in mediapipe_differences(tokenizer))
    config = BertConfig(tokenizer.vocabulary_size, 1, 2, 4, 4)
    _, pruned = prune_vocabulary(build_model(config), tokenizer, ["the fox"])
    assert pruned.vocabulary_size < tokenizer.vocabulary_size
    assert pruned.tokens("the [E1] COVID19") == tokenizer.tokens("the [E1] COVID19")


def test_a_token_that_is_added_to_a_marian_is_refused(tmp_path):
    train_unigram(["the quick fox"] * 9, 40, "marian").save(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "marian"}')
    assert load_tokenizer(tmp_path).tokens("fox")
    (tmp_path / "added_tokens.json").write_text('{"[E1]": 99}')
    with pytest.raises(InputError, match=r"\[E1\]"):
        load_tokenizer(tmp_path)


def test_pruning_keeps_the_spelling_of_an_added_word_of_the_vocabulary(tmp_path):
    words = [*WORDS[:5], "Fox", "a", "the", "cat", "dog"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    added = {"content": "Fox", "id": 5, "normalized": True}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": [added]}))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.token(5) == "Fox"
    model = build_model(BertConfig(tokenizer.vocabulary_size, 1, 2, 4, 4))
    smaller, pruned = prune_vocabulary(model, tokenizer, ["the Fox"])
    rows = smaller.get_layer("embeddings").token_table.shape[0]
    assert rows == pruned.vocabulary_size == len({*pruned.tokens_by_id()})
    (ids,) = ids_of(pruned, ["the Fox"])
    assert [pruned.token(i) for i in ids] == ["[CLS]", "the", "Fox", "[SEP]"]


@pytest.mark.parametrize("family", ["roberta", "modernbert"])
def test_a_mask_takes_the_space_before_it_where_the_files_say_so(family, tmp_path):
    tokenizer = tokenizer_of(family)
    tokenizer.save(tmp_path)
    path, mask = tmp_path / "tokenizer.json", tokenizer.token(tokenizer.mask_token_id)
    content = json.loads(path.read_text(encoding="utf-8"))
    entry = next(token for token in content["added_tokens"] if token["content"] == mask)
    for takes in (True, False):
        entry["lstrip"] = takes
        path.write_text(json.dumps(content), encoding="utf-8")
        engine = tokenizers.Tokenizer.from_file(str(path))
        texts = [f"the {mask} fox", f"the{mask}", mask]
        expected = [encoding.ids for encoding in engine.encode_batch(texts)]
        assert ids_of(load_tokenizer(tmp_path), texts) == expected
        assert (expected[0].index(tokenizer.mask_token_id) == len(expected[1]) - 2) == takes
