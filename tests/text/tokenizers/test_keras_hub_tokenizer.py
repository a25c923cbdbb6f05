"""Tokenizers of presets that keras-hub wrote."""

import json

import keras_hub
import pytest

from tests.checkpoints.keras_hub_backbones import LINES, change_json
from tests.text.family_tokenizers import sentencepiece_model
from tfnlp.text import load_tokenizer, train_byte_level_bpe, train_wordpiece
from tfnlp.utils.errors import InputError


def ids_of(tokenizer, texts, frame):
    rows = [e.token_ids for e in tokenizer.encode(texts)]
    return [row[1:-1] if frame else row for row in rows]


def check_tokenizer(theirs, folder, frame=True):
    theirs.save_to_preset(folder)
    tokenizer = load_tokenizer(folder)
    found = ids_of(tokenizer, LINES, frame)
    assert found == [[int(i) for i in theirs(line)] for line in LINES]
    assert tokenizer.vocabulary_size == theirs.vocabulary_size()
    assert len({i for row in found for i in row}) > 30
    return tokenizer


@pytest.mark.parametrize("stem", ["Bert", "DistilBert", "Electra"])
def test_wordpiece_assets(stem, tmp_path):
    vocabulary = train_wordpiece(LINES * 3, 200).vocabulary
    make = getattr(keras_hub.models, f"{stem}Tokenizer")
    check_tokenizer(make(vocabulary=vocabulary, lowercase=True), tmp_path)
    cased = train_wordpiece(LINES * 3, 200, lowercase=False).vocabulary
    loaded = check_tokenizer(make(vocabulary=cased, lowercase=False), tmp_path)
    assert not loaded.lowercase and loaded.strip_accents is False


@pytest.mark.parametrize(("stem", "family"), [("Roberta", "roberta"), ("GPT2", "gpt2")])
def test_byte_level_bpe_assets(stem, family, tmp_path):
    train_byte_level_bpe(LINES * 3, 400, family).save(tmp_path / "ours")
    vocabulary = json.loads((tmp_path / "ours" / "vocab.json").read_text())
    lines = (tmp_path / "ours" / "merges.txt").read_text().splitlines()[1:]
    make = getattr(keras_hub.models, f"{stem}Tokenizer")
    tokenizer = make(vocabulary=vocabulary, merges=lines)
    check_tokenizer(tokenizer, tmp_path / "theirs", frame=family == "roberta")


@pytest.mark.parametrize("stem", ["Albert", "DebertaV3"])
def test_sentencepiece_assets(stem, tmp_path):
    pad, unknown = ("<pad>", "<unk>") if stem == "Albert" else ("[PAD]", "[UNK]")
    pieces = {"pad_piece": pad, "unk_piece": unknown, "bos_piece": "[CLS]", "eos_piece": "[SEP]"}
    ids = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
    further = ["[MASK]"] if stem == "Albert" else []
    model = sentencepiece_model(LINES * 3, 120, **ids, **pieces, user_defined_symbols=further)
    make = getattr(keras_hub.models, f"{stem}Tokenizer")
    tokenizer = check_tokenizer(make(proto=model), tmp_path)
    assert tokenizer.token_id("[MASK]") == make(proto=model).mask_token_id


SETTINGS = {
    "split": False,
    "special_tokens_in_strings": True,
    "suffix_indicator": "@@",
    "oov_token": "<unk>",
    "add_eos": True,
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_that_give_other_ids_are_refused_by_name(setting, tmp_path):
    vocabulary = train_wordpiece(LINES * 3, 200).vocabulary
    keras_hub.models.BertTokenizer(vocabulary=vocabulary).save_to_preset(tmp_path)
    path = tmp_path / "tokenizer.json"
    change_json(path, lambda fields: fields["config"].update({setting: SETTINGS[setting]}))
    with pytest.raises(InputError, match=f"{setting}={SETTINGS[setting]!r} is not supported"):
        load_tokenizer(tmp_path)


def test_a_tokenizer_of_another_class_is_named(tmp_path):
    (tmp_path / "assets" / "tokenizer").mkdir(parents=True)
    for name, message in (
        ("GemmaTokenizer", "the class GemmaTokenizer is none that tfnlp reads"),
        ("BertTokenizer", r"assets/tokenizer/vocabulary\.txt does not exist"),
    ):
        fields = {"class_name": name, "config": {}}
        (tmp_path / "tokenizer.json").write_text(json.dumps(fields))
        with pytest.raises(InputError, match=message):
            load_tokenizer(tmp_path)
