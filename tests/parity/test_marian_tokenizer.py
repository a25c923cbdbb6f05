"""Marian's tokenizers against `MarianTokenizer` of `transformers`, on one folder."""

import pytest

from tests.text.tokenizers.test_marian import KOREAN, english, pair_of_models  # noqa: F401  fixtures
from tfnlp.text import load_tokenizer, train_tokenizer
from tfnlp.text.tokenizers.marian import MarianTokenizer

transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")

TEXTS = [
    *(
        "",
        " ",
        "a",
        "A film , is fine .",
        "  twice  spaced\tand\ncut ",
        "Ｗide ﬁ ½",
        "naïve é e\u0301",
    ),
    *("😀😀 日本", "a</s>b <pad> <unk>", "ㅋㅋㅋㅋ 재미", "zzzzzqqqq", "\u200bnone", "ß straße"),
]
CODES = [">>ko<< a film", ">>ko<<a", ">>xx<< a", "a >>ko<< b", ">>ko a"]


def check(tokenizer, folder, texts):
    theirs = transformers.MarianTokenizer.from_pretrained(folder)
    assert theirs.vocab_size == tokenizer.vocabulary_size
    for text in texts:
        ids = tokenizer.encode([text])[0].token_ids
        assert ids == theirs(text)["input_ids"], text
        assert tokenizer.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
    return theirs


@pytest.mark.filterwarnings("ignore:Recommended")
def test_a_pair(pair_of_models, english, tmp_path):  # noqa: F811
    tokenizer = MarianTokenizer(*pair_of_models)
    tokenizer.save(tmp_path)
    texts = [*english[:50], *KOREAN[:3], *TEXTS, *CODES]
    theirs = check(load_tokenizer(tmp_path), tmp_path, texts)
    target = load_tokenizer(tmp_path).target
    for text in texts:
        assert target.encode([text])[0].token_ids == theirs(text_target=text)["input_ids"]


@pytest.mark.filterwarnings("ignore:Recommended")
def test_one_model_of_both(english, tmp_path):  # noqa: F811
    tokenizer, _ = train_tokenizer([*english, *KOREAN], "unigram", 300, "marian")
    tokenizer.save(tmp_path)
    check(tokenizer, tmp_path, [*english[:50], *KOREAN[:3], *TEXTS])
    check(load_tokenizer(tmp_path), tmp_path, [*english[:50], *KOREAN[:3], *TEXTS])
