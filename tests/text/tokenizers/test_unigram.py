"""Unigram tokenizers from SentencePiece model files."""

import json

import pytest

from tests.text.family_tokenizers import HARD_TEXTS, ids_of, saved, sentencepiece_model, theirs_of
from tfnlp.text import UnigramTokenizer, load_tokenizer, train_tokenizer, train_unigram
from tfnlp.text.tokenizers.special_tokens import SPECIAL_TOKENS
from tfnlp.text.tokenizers.unigram import MODEL_FILES, _sentencepiece_bytes, sentencepiece_package
from tfnlp.utils.errors import InputError


@pytest.mark.parametrize("family", ["albert", "xlnet", "deberta-v2"])
def test_sentencepiece_file(family, tmp_path):
    pytest.importorskip("transformers", reason="parity needs .[parity]")
    roles, path = SPECIAL_TOKENS[family].tokens, tmp_path / MODEL_FILES[family]
    own = ("unk_token", "pad_token", "bos_token", "eos_token")
    # Where `transformers` takes them to be in each family's file.
    unknown, pad = (0, 5) if family == "xlnet" else (1, 0)
    ids = {"unk_id": unknown, "pad_id": pad, "bos_id": 2, "eos_id": 3}
    ids |= {"unk_piece": roles["unk_token"], "pad_piece": roles["pad_token"]}
    further = [token for role, token in roles.items() if role not in own]
    texts = [text for text in HARD_TEXTS if text]
    path.write_bytes(sentencepiece_model(texts, 160, **ids, user_defined_symbols=further))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    theirs = theirs_of(tmp_path, family)
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.character_map
    assert ids_of(tokenizer, HARD_TEXTS) == theirs(HARD_TEXTS)["input_ids"]
    path.write_bytes(b"\xff" * 40)
    with pytest.raises(InputError, match="no SentencePiece unigram model"):
        load_tokenizer(tmp_path)


def test_hangul_stays_whole_where_xlnet_keeps_accents(tmp_path):
    transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")
    text = "정말 café"
    assert "정" not in train_unigram(HARD_TEXTS, 330, "xlnet").tokens(text)
    tokenizer, _ = train_tokenizer(HARD_TEXTS, "unigram", 330, "xlnet", keep_accents=True)
    assert {"정", "é"} <= {*"".join(tokenizer.tokens(text))}
    folder = saved(tokenizer, tmp_path / "ours", "xlnet")
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    theirs.save_pretrained(tmp_path / "theirs")
    ids = ids_of(tokenizer, HARD_TEXTS)
    assert theirs(HARD_TEXTS)["input_ids"] == ids
    assert theirs(["a", text], padding=True)["input_ids"][0][-1] == tokenizer.token_id("<cls>")
    for path in (folder, tmp_path / "theirs"):
        assert ids_of(load_tokenizer(path), HARD_TEXTS) == ids
    with pytest.raises(InputError, match="keep_accents"):
        train_tokenizer(HARD_TEXTS, "wordpiece", 330, keep_accents=True)


def test_windows_of_a_pair_have_the_segments_of_its_template():
    for family, segment in (("xlm-roberta", 0), ("albert", 1)):
        tokenizer = train_unigram(["a film that one sees"] * 9, 40, family)
        windows = [*tokenizer.encode_windows(["a film"], ["a film " * 20], 24, 2)]
        assert len(windows) > 2
        for window in windows:
            sources = zip(window.sources, window.segment_ids, strict=True)
            assert {s for source, s in sources if source == 1} == {segment}


def test_bad_sizes_and_pieces_are_named():
    with pytest.raises(InputError, match="vocabulary_size=12 is less than the characters"):
        train_unigram(HARD_TEXTS, 12, "xlnet")
    with pytest.raises(InputError, match="lacks <pad>"):
        UnigramTokenizer([("a", -1.0)], "albert")


@pytest.mark.parametrize(
    "settings, name, value",
    [
        ("normalizer_spec", "add_dummy_prefix", False),
        ("normalizer_spec", "escape_whitespaces", False),
        ("trainer_spec", "byte_fallback", True),
        ("trainer_spec", "treat_whitespace_as_suffix", True),
    ],
)
def test_a_setting_of_sentencepiece_that_changes_pieces_is_named(settings, name, value, tmp_path):
    pieces = dict.fromkeys([*SPECIAL_TOKENS["albert"].tokens.values(), "▁a"])
    pieces = [(piece, 0.0) for piece in pieces]
    content = _sentencepiece_bytes(pieces, SPECIAL_TOKENS["albert"].tokens, b"")
    model = sentencepiece_package().sentencepiece_model_pb2.ModelProto.FromString(content)
    setattr(getattr(model, settings), name, value)
    (tmp_path / "spiece.model").write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match=f"spiece.model .* {name}={value}"):
        UnigramTokenizer.from_folder(tmp_path, "albert")
