import gzip
import pathlib
import subprocess
import sys
import unicodedata

import pytest

from tfnlp.text import WordPieceTokenizer, train_wordpiece
from tfnlp.text.tokenizers.wordpiece import FIRST_TOKENS
from tfnlp.utils.errors import InputError

HARD = [
    "",
    "   \t \n ",
    "Ça va? naïve café Ångström İstanbul",
    "中文字 mixed 日本語 and 漢字かな",
    "한국어 문장, 정말 좋다! ㅋㅋㅋ ㅠㅠ",
    "emoji 😀👍🏽 ❤️ family 👨‍👩‍👧",
    "control \x00\x01\x7f\u200b\u200d\ufeff characters\ufffd",
    "a" * 1000,
    "가" * 1000 + " end",
    "don't stop-me ... (now)",
    "\u00a0non\u3000breaking\u2028separator",
    "x\u0301y\u0308 de\u0301compose\u0301",
]


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip_accents", [True, False])
def test_equals_transformers_on_hard_texts(lowercase, strip_accents, tmp_path):
    transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")
    characters = sorted({c for text in HARD for c in text + text.lower() if c.strip()})
    decomposed = {c for x in characters for c in unicodedata.normalize("NFD", x)}
    pieces = sorted({*characters, *decomposed} | {f"##{c}" for c in decomposed})
    kept = [p for i, p in enumerate(pieces) if i % 5]
    vocabulary = [*FIRST_TOKENS, "caf", "##fe", "한국", "##어", *kept]
    ours = WordPieceTokenizer(dict.fromkeys(vocabulary), lowercase, strip_accents)
    ours.save(tmp_path)
    options = {"do_lower_case": lowercase, "strip_accents": strip_accents}
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path, **options)
    for text in HARD:
        assert ours.tokens(text) == theirs.tokenize(text), text


@pytest.mark.parametrize("corpus", ["sst2/dev.tsv", "nsmc/dev.tsv", "nsmc/unlabelled.txt.gz"])
@pytest.mark.parametrize("lowercase", [True, False])
def test_equals_transformers_on_real_lines(corpus, lowercase, data_dir, minilm):
    transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")
    path = data_dir / corpus
    content = path.read_bytes()
    content = gzip.decompress(content) if corpus.endswith("gz") else content
    lines = content.decode().split("\n")[:40000]
    ours = WordPieceTokenizer.from_folder(minilm)
    ours = WordPieceTokenizer(ours.vocabulary, lowercase)
    theirs = transformers.BertTokenizer.from_pretrained(minilm, do_lower_case=lowercase)
    found = [e.token_ids for e in ours.encode(lines)]
    assert found == theirs(lines)["input_ids"]
    some = found[::100]
    assert ours.decode(some) == [theirs.decode(ids, skip_special_tokens=True) for ids in some]


def test_pairs_segments_and_cuts(tokenizer):
    (encoding,) = tokenizer.encode(["a fine film"], ["not dull"])
    tokens = [tokenizer.vocabulary[i] for i in encoding.token_ids]
    assert tokens == ["[CLS]", "a", "fine", "film", "[SEP]", "not", "dull", "[SEP]"]
    assert encoding.segment_ids == [0, 0, 0, 0, 0, 1, 1, 1]
    assert not encoding.truncated
    (cut,) = tokenizer.encode(["a fine film"], max_length=4)
    assert [tokenizer.vocabulary[i] for i in cut.token_ids] == ["[CLS]", "a", "fine", "[SEP]"]
    assert cut.truncated
    assert tokenizer.encode([""], max_length=4)[0].token_ids == [2, 3]


def test_learns_a_korean_vocabulary_with_whole_syllables(tmp_path):
    tokenizer = train_wordpiece(["정말 좋은 영화", "정말 지루한 영화"] * 5, 60)
    assert {"정말", "영화"} <= set(tokenizer.vocabulary)
    assert tokenizer.vocabulary_size <= 60
    tokenizer.save(tmp_path)
    loaded = WordPieceTokenizer.from_folder(tmp_path)
    assert loaded.settings() == tokenizer.settings()
    assert loaded.tokens("정말 영화") == ["정말", "영화"]
    (tmp_path / "vocab.txt").unlink()
    assert WordPieceTokenizer.from_folder(tmp_path).vocabulary == tokenizer.vocabulary


def test_learning_is_the_same_in_every_process():
    code = (
        "from tests.grammar_corpus import make_reviews\n"
        "from tfnlp.text import train_wordpiece\n"
        "texts = [text for text, _ in make_reviews(300)]\n"
        "print(train_wordpiece(texts, 300).vocabulary)"
    )
    root = pathlib.Path(__file__).parents[3]
    command = [sys.executable, "-c", code]
    found = {subprocess.check_output(command, cwd=root) for _ in range(3)}
    assert len(found) == 1


def test_a_vocabulary_smaller_than_the_alphabet_keeps_the_frequent_characters():
    tokenizer = train_wordpiece(["aaa bb cde", "aaa bb"], 9)
    assert tokenizer.vocabulary_size <= 9
    assert {"a", "##a", "b", "##b"} <= set(tokenizer.vocabulary)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"lacks \[PAD\]"),
        (b"[PAD]\n[UNK]\n[CLS]\n", r"lacks \[SEP\]"),
        (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\na\n", "holds 'a' twice"),
        (b"[PAD]\n\xff\n", "not UTF-8"),
        (None, r"tokenizer\.json is missing"),
    ],
)
def test_bad_vocabularies_are_named(content, message, tmp_path):
    if content is not None:
        (tmp_path / "vocab.txt").write_bytes(content)
    with pytest.raises(InputError, match=message):
        WordPieceTokenizer.from_folder(tmp_path)
