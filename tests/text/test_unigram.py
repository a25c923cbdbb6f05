"""Unigram tokenizers from SentencePiece model files."""

import json
import pathlib

import pytest

from tfnlp.text import load_tokenizer
from tfnlp.utils.errors import InputError

transformers = pytest.importorskip("transformers", reason="parity needs tfnlp[parity]")


TEXTS = [
    "The quick brown fox jumps over the lazy dog .",
    "정말 재미있는 영화였다 ! 다시 보고 싶다",
    "a naïve café , don't you think ?  two  spaces\tand a tab",
    "<unk> @-@ 1,000 ``quoted'' ½ ﬁne 東京 😀",
    "",
    "  leading and trailing  ",
] * 3


CLASSES = {
    "gpt2": "GPT2Tokenizer",
    "roberta": "RobertaTokenizer",
    "deberta": "DebertaTokenizer",
    "albert": "AlbertTokenizer",
    "xlnet": "XLNetTokenizer",
    "deberta-v2": "DebertaV2Tokenizer",
}


def theirs_of(folder, family):
    return getattr(transformers, CLASSES[family]).from_pretrained(folder)


@pytest.mark.parametrize("family", ["albert", "xlnet", "deberta-v2"])
def test_sentencepiece_file(family, tmp_path):
    spm = pytest.importorskip("sentencepiece")
    from tfnlp.text.special_tokens import SPECIAL_TOKENS
    from tfnlp.text.unigram import MODEL_FILES

    roles = SPECIAL_TOKENS[family].tokens
    stem = tmp_path / MODEL_FILES[family].removesuffix(".model")
    own = ("unk_token", "pad_token", "bos_token", "eos_token")
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter([t for t in TEXTS if t]),
        model_prefix=str(stem),
        vocab_size=160,
        hard_vocab_limit=False,
        # Where `transformers` takes it to be in each family's file.
        unk_id=0 if family == "xlnet" else 1,
        bos_id=2,
        eos_id=3,
        unk_piece=roles["unk_token"],
        pad_id=5 if family == "xlnet" else 0,
        pad_piece=roles["pad_token"],
        user_defined_symbols=[t for r, t in roles.items() if r not in own],
        minloglevel=2,
    )
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    theirs = theirs_of(tmp_path, family)
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.character_map
    assert [e.token_ids for e in tokenizer.encode(TEXTS)] == theirs(TEXTS)["input_ids"]
    pathlib.Path(f"{stem}.model").write_bytes(b"\xff" * 40)
    with pytest.raises(InputError, match="no SentencePiece model"):
        load_tokenizer(tmp_path)
