import gzip
import pathlib
import random
import subprocess
import sys
import unicodedata

import pytest

from tfnlp.text import WordPieceTokenizer, train_wordpiece
from tfnlp.utils.errors import InputError


def original_tokens(text, vocabulary, lowercase, strip_accents):
    """BERT's tokenization as its paper's released code describes it, step by step."""
    cleaned = ""
    for c in text:
        category = unicodedata.category(c)
        if c in "\t\n\r" or category == "Zs":
            cleaned += " "
        elif ord(c) in (0, 0xFFFD) or category[0] == "C":
            continue
        elif _is_ideograph(ord(c)):
            cleaned += f" {c} "
        else:
            cleaned += c
    words = []
    for word in cleaned.split():
        if lowercase:
            word = word.lower()
        if strip_accents:
            decomposed = unicodedata.normalize("NFD", word)
            word = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
        current = ""
        for c in word:
            if _is_punctuation(c):
                words += [current, c] if current else [c]
                current = ""
            else:
                current += c
        words += [current] if current else []
    pieces = []
    for word in words:
        pieces += _longest_pieces(word, vocabulary)
    return pieces


def _is_ideograph(code):
    blocks = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)]
    blocks += [(0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)]
    return any(low <= code <= high for low, high in blocks)


def _is_punctuation(c):
    ascii_sign = 33 <= ord(c) <= 126 and not c.isalnum()
    return ascii_sign or unicodedata.category(c)[0] == "P"


def _longest_pieces(word, vocabulary):
    if len(word) > 100:
        return ["[UNK]"]
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(piece)
        start = end
    return pieces


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
    "don't stop-me ... (now) [SEP] [MASK]",
    "\u00a0non\u3000breaking\u2028separator",
    "x\u0301y\u0308 de\u0301compose\u0301",
]


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip_accents", [True, False])
def test_equals_the_original_on_hard_texts(lowercase, strip_accents):
    characters = sorted({c for text in HARD for c in text + text.lower() if c.strip()})
    decomposed = {c for x in characters for c in unicodedata.normalize("NFD", x)}
    pieces = sorted({*characters, *decomposed} | {f"##{c}" for c in decomposed})
    kept = [p for i, p in enumerate(pieces) if i % 5]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "caf", "##fe", "한국", "##어", *kept]
    tokenizer = WordPieceTokenizer(dict.fromkeys(vocabulary), lowercase, strip_accents)
    for text in HARD:
        expected = original_tokens(text, set(vocabulary), lowercase, strip_accents)
        assert tokenizer.tokens(text) == expected, text


@pytest.mark.parametrize(
    "corpus",
    [f"sst2/{name}.tsv" for name in ("train", "dev", "test")]
    + ["nsmc/train.tsv.gz", "nsmc/dev.tsv", "nsmc/test.tsv", "nsmc/unlabelled.txt.gz"],
)
@pytest.mark.parametrize("lowercase", [True, False])
def test_equals_transformers_and_the_original_on_real_lines(corpus, lowercase, data_dir, minilm):
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
    vocabulary = set(ours.vocabulary)
    for line in random.Random(0).sample(lines, 500):
        assert ours.tokens(line) == original_tokens(line, vocabulary, lowercase, lowercase)


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
    ],
)
def test_bad_vocabularies_are_named(content, message, tmp_path):
    (tmp_path / "vocab.txt").write_bytes(content)
    with pytest.raises(InputError, match=message):
        WordPieceTokenizer.from_folder(tmp_path)


def test_a_folder_without_tokenizer_is_named(tmp_path):
    with pytest.raises(InputError, match=r"tokenizer\.json is missing"):
        WordPieceTokenizer.from_folder(tmp_path)
