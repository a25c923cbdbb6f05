"""Training of tokenizers, and their choice by family."""

import json

import pytest
import tokenizers

from tests.text.family_tokenizers import (
    CLASSES,
    FAMILIES,
    HARD_TEXTS,
    ids_of,
    saved,
    tokenizer_of,
    trained,
)
from tfnlp.text import (
    WordPieceTokenizer,
    load_tokenizer,
    train_byte_level_bpe,
    train_unigram,
    train_wordpiece,
)
from tfnlp.text.tokenizers.tokenizer_loading import tokenizer_statistics, train_tokenizer
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
    with pytest.raises(InputError, match=r"family=bert has no tokenizer of kind=bpe"):
        train_tokenizer(HARD_TEXTS, "bpe", 300, "bert")


@pytest.mark.parametrize(
    ("family", "model", "kind"),
    [("roberta", "albert", "Unigram"), ("albert", "gpt2", "BPE"), ("albert", "bert", "WordPiece")],
)
def test_a_tokenizer_of_another_kind_is_named(family, model, kind, tmp_path):
    saved(trained(family, HARD_TEXTS, 300), tmp_path, model)
    (tmp_path / "vocab.json").unlink(missing_ok=True)
    settings = {"tokenizer_class": CLASSES[model]}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match=rf"\.json holds .*, but .* of the kind {kind};"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tokenizer_json_alone_is_enough(family, tmp_path):
    tokenizer = tokenizer_of(family)
    # Two whose tokens are all those of another's too.
    saved(tokenizer, tmp_path, family if family in ("xlnet", "modernbert") else "electra")
    for path in tmp_path.iterdir():
        if path.name not in ("tokenizer.json", "config.json"):
            path.unlink()
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    untyped = {key: value for key, value in content["model"].items() if key != "type"}
    for model in (content["model"], untyped):
        path.write_text(json.dumps(content | {"model": model}), encoding="utf-8")
        found = load_tokenizer(tmp_path)
        assert (found.family, found.to_json()) == (tokenizer.family, tokenizer.to_json())


@pytest.mark.parametrize(
    "model, message",
    [
        ({"type": "WordLevel", "vocab": {"a": 0}}, "a model of the kind WordLevel"),
        ({"type": "BPE"}, "a model of the kind None"),
        ({"type": "Unigram", "vocab": [["a", -1.0], ["</s>", 0.0]]}, "xlm-roberta needs </s>"),
    ],
)
def test_a_tokenizer_json_of_no_family_is_refused(model, message, tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model}))
    with pytest.raises(InputError, match=message):
        load_tokenizer(tmp_path)


def test_a_class_that_tfnlp_lacks_is_refused_by_name(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nkim")
    for file in ("tokenizer_config.json", "config.json"):
        (tmp_path / file).write_text('{"tokenizer_class": "RetriBertTokenizer"}')
        with pytest.raises(InputError, match=rf"/{file}: tfnlp has no RetriBertTokenizer"):
            load_tokenizer(tmp_path)
        (tmp_path / file).unlink()
    for name in ("BertTokenizerFast", "PreTrainedTokenizerFast", "TokenizersBackend"):
        (tmp_path / "tokenizer_config.json").write_text(f'{{"tokenizer_class": "{name}"}}')
        assert load_tokenizer(tmp_path).tokens("kim") == ["kim"]


EDITS = {
    "case": ("bert", lambda engine: engine["normalizer"].update(lowercase=False)),
    "long words": ("bert", lambda engine: engine["model"].update(max_input_chars_per_word=50)),
    "words": ("bert", lambda engine: engine.update(pre_tokenizer={"type": "WhitespaceSplit"})),
    "template": ("bert", lambda engine: engine.update(post_processor=None)),
    "normalizer": ("roberta", lambda engine: engine.update(normalizer={"type": "Lowercase"})),
    "spaces": ("gpt2", lambda engine: engine["pre_tokenizer"].update(add_prefix_space=True)),
    "end": ("albert", lambda engine: engine.update(post_processor=None)),
}


def edited(folder, family, edit):
    """Write a tokenizer whose class says that its tokenizer.json rules, and edit that."""
    saved(tokenizer_of(family), folder, family)
    for name, change in (("tokenizer.json", edit), ("tokenizer_config.json", names_no_family)):
        content = json.loads((folder / name).read_text(encoding="utf-8"))
        change(content)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


def names_no_family(settings):
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"


@pytest.mark.parametrize("family, edit", EDITS.values(), ids=EDITS)
def test_a_tokenizer_json_that_reads_otherwise_is_refused(family, edit, tmp_path):
    with pytest.raises(InputError, match=r"tokenizer\.json reads"):
        load_tokenizer(edited(tmp_path, family, edit))


@pytest.mark.parametrize("family", ["albert", "xlnet", "deberta-v2"])
def test_a_normalizer_of_a_unigram_tokenizer_json_is_followed(family, tmp_path):
    folder = edited(tmp_path, family, lambda engine: engine.update(normalizer=None))
    engine = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    expected = [encoding.ids for encoding in engine.encode_batch(HARD_TEXTS)]
    assert ids_of(load_tokenizer(folder), HARD_TEXTS) == expected
    assert ids_of(tokenizer_of(family), HARD_TEXTS) != expected


@pytest.mark.parametrize("name", [None, "PreTrainedTokenizerFast"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_a_tokenizer_json_rules_beside_a_vocabulary_whose_rules_nothing_says(
    name, lowercase, tmp_path
):
    # As of those that `tokenizers` trains and writes by save() and model.save().
    train_wordpiece(HARD_TEXTS, 200, lowercase).save(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    engine = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    texts = [text for text in HARD_TEXTS if "[MASK]" not in text] + ["A FINE film"]
    expected = [encoding.ids for encoding in engine.encode_batch(texts)]
    assert ids_of(load_tokenizer(tmp_path), texts) == expected


def test_unigram_pieces_with_bytes_for_unknown_characters_are_refused_by_what_they_read(tmp_path):
    saved(trained("xlm-roberta", HARD_TEXTS, 300), tmp_path, "xlm-roberta")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "TokenizersBackend"}')
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["model"]["byte_fallback"] = True  # without a piece for a byte, as in XLM-R
    path.write_text(json.dumps(content), encoding="utf-8")
    engine = tokenizers.Tokenizer.from_file(str(path))
    expected = [encoding.ids for encoding in engine.encode_batch(HARD_TEXTS)]
    assert ids_of(load_tokenizer(tmp_path), HARD_TEXTS) == expected
    content["model"]["vocab"] += [[f"<0x{byte:02X}>", -20.0] for byte in range(256)]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=r"tokenizer\.json reads"):
        load_tokenizer(tmp_path)


def test_a_model_whose_class_says_nothing_reads_by_its_tokenizer_json(tmp_path):
    saved(trained("modernbert", HARD_TEXTS, 330), tmp_path, "modernbert")
    (tmp_path / "tokenizer_config.json").unlink()
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {"normalizer": {"type": "Lowercase"}}))
    with pytest.raises(InputError, match=r"tokenizer\.json reads"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
def test_cutting_and_padding_of_a_tokenizer_json_are_the_callers(family, tmp_path):
    truncation = {"max_length": 4, "stride": 0, "strategy": "LongestFirst", "direction": "Right"}
    padding = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    sections = {"truncation": truncation, "padding": padding}
    tokenizer = load_tokenizer(edited(tmp_path, family, lambda engine: engine.update(sections)))
    assert ids_of(tokenizer, HARD_TEXTS) == ids_of(tokenizer_of(family), HARD_TEXTS)
