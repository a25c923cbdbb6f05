"""Files as documents, and documents as ids with the borders of their sentences."""

import gzip
import json

import numpy as np
import pytest

from tests.text.family_tokenizers import FAMILIES, KINDS, trained
from tfnlp.corpora import documents as module
from tfnlp.corpora.documents import encode_documents, find_files, hold_out, read_documents
from tfnlp.corpora.sentence_splitting import split_sentences
from tfnlp.text.tokenizers import tokenizer as tokenizer_module
from tfnlp.utils.errors import InputError

TEXTS = [
    "He came. She left early!  It was (very) late… He slept.",
    "이 영화는 재미있다. 다시 보고 싶다ㅋㅋ 정말이다.끝",
    "a line\nanother line. And more\n\n  indented one",
    "One <unk> [MASK] <mask>. Two 😀😀. Three.",
    "",
    "no end",
]


def write(path, text):
    with gzip.open(path, "wb") if path.suffix == ".gz" else open(path, "wb") as file:
        file.write(text.encode())
    return path


def test_documents_of_each_kind_of_file(tmp_path):
    text = "\ufeffone\ntwo \n\n \n three\r\n\nfour"
    for name in ("plain.txt", "plain.text.gz"):
        path = write(tmp_path / name, text)
        assert list(read_documents([path])) == ["one\ntwo", "three", "four"]
        lines = ["one", "two", "", "", "three", "", "four"]
        assert list(read_documents([path], "lines")) == lines
        whole = ["one\ntwo \n\n \n three\n\nfour"]
        assert list(read_documents([path] * 2, "files")) == whole * 2
    rows = [{"page": {"text": "eins.\n\nzwei"}}, {"page": {"text": " "}}, {"page": {"text": 3}}]
    path = write(tmp_path / "rows.jsonl.gz", "\n".join(map(json.dumps, rows)))
    assert list(read_documents([path], text_column="page.text")) == ["eins.\n\nzwei", "", "3"]
    path = write(tmp_path / "rows.tsv", "id\tsentence\n1\tone\n2\ttwo\n")
    empty = write(tmp_path / "empty.txt", "")
    assert list(read_documents([path, empty], "files")) == ["one", "two", ""]
    path = write(tmp_path / "rows.csv", 'sentence\n"a ""b""\nc"\n')
    assert list(read_documents([path])) == ['a "b"\nc']


def test_progress_is_reported_in_bytes(tmp_path):
    paths = [write(tmp_path / "a.txt", "line of it\n" * 40_000)]
    paths.append(write(tmp_path / "b.txt.gz", "".join(f"{i * i}\n" for i in range(50_000))))
    paths.append(write(tmp_path / "c.jsonl", '{"sentence": "a"}\n' * 9_000))
    told = []
    assert len(list(read_documents(paths, "lines", on_read=told.append))) == 99_000
    sizes = np.cumsum([path.stat().st_size for path in paths])
    assert told == sorted(told) and set(sizes) <= set(told) and told[-1] == sizes[-1]
    for low, high in zip([0, *sizes[:-1]], sizes, strict=True):
        assert sum(low < place < high for place in told) > 5


def test_files_are_found_by_patterns(tmp_path):
    for name in ("b.txt", "a.txt", "c[1].txt"):
        write(tmp_path / name, "x")
    found = find_files([tmp_path / "b.txt", f"{tmp_path}/?.txt", f"{tmp_path}/c[1].txt"])
    assert [path.name for path in found] == ["b.txt", "a.txt", "c[1].txt"]
    for given, said in (
        (f"{tmp_path}/*.gz", r"No file matches .*\*\.gz"),
        (tmp_path / "none.txt", r"none\.txt does not exist"),
        (tmp_path, "is a folder"),
    ):
        with pytest.raises(InputError, match=said):
            find_files([given])


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_are_those_of_running_text_and_sentences_part_them(family, monkeypatch):
    kind, tokenizer = KINDS[family], trained(family, TEXTS * 9, 320)
    framing = {*tokenizer.special_token_ids} - {tokenizer.unknown_token_id}

    def plain(text):
        encoding = tokenizer.encode([text], offsets=True, literal=True)[0]
        return [
            i for i, s in zip(encoding.token_ids, encoding.sources, strict=True) if s is not None
        ]

    found = list(encode_documents(TEXTS, tokenizer))
    for text, (ids, lengths) in zip(TEXTS, found, strict=True):
        assert ids.tolist() == plain(text) and (lengths > 0).all()
        assert ids.dtype == "int32" and lengths.dtype == "int64" and lengths.sum() == len(ids)
        sentences = split_sentences(text)
        assert len(lengths) == len(sentences)
        if kind == "wordpiece":
            parts = np.split(ids, np.cumsum(lengths)[:-1]) if len(lengths) else []
            assert [p.tolist() for p in parts] == [plain(s) for s in sentences]
    assert not set(found[0][0]) & framing
    assert [len(lengths) for _, lengths in found] == [4, 4, 4, 3, 0, 1]
    by_lines = list(encode_documents(TEXTS, tokenizer, "lines"))
    assert [len(lengths) for _, lengths in by_lines] == [1, 1, 3, 1, 0, 1]
    for (ids, _), (same, _) in zip(found, by_lines, strict=True):
        np.testing.assert_array_equal(ids, same)
    # How many texts are tokenised at a time, and where a long one is cut, changes nothing.
    for each in (module, tokenizer_module):
        monkeypatch.setattr(each, "PIECE_CHARACTERS", 12)
    again = list(encode_documents(TEXTS, tokenizer))
    for number in range(len(TEXTS)):
        if kind != "bpe" or number != 2:  # which reads two ends of lines as one token or two
            for array, same in zip(found[number], again[number], strict=True):
                np.testing.assert_array_equal(array, same)


@pytest.mark.parametrize("family", FAMILIES)
def test_special_tokens_in_a_document_are_text(family):
    texts = ["[SEP] </s> <sep> <|endoftext|> <s> [CLS] <mask> [MASK] <pad> PAD cls are fun"] * 9
    kind, tokenizer = KINDS[family], trained(family, texts, 400)
    unknown = {"<unk>", "[UNK]"}
    special = [t for t in map(tokenizer.token, tokenizer.special_token_ids) if t not in unknown]
    ids = {token: tokenizer.token_id(token) for token in special}
    for token, own in ids.items():
        ((found, _),) = encode_documents([f"{token} are{token} fun {token}"], tokenizer)
        assert own not in found and not {*found} & {*ids.values()}, token
        # Nothing of it is lost.
        text = tokenizer.decode(found).lower().replace(" ", "")
        assert kind == "wordpiece" or text == f"{token}are{token}fun{token}".lower(), token
        # As `transformers` reads a text; WordPiece, as BERT's own code, does not.
        framed, also = (tokenizer.encode([text])[0] for text in ("are fun", f"are {token} fun"))
        more = also.token_ids.count(own) - framed.token_ids.count(own)
        assert more == (kind != "wordpiece")
    ((plain, _),) = encode_documents(["are fun"], tokenizer)
    (whole,) = tokenizer.encode(["are fun"])
    assert plain.tolist() == [i for i in whole.token_ids if i not in tokenizer.special_token_ids]
    # What the makers of a corpus left out is unknown.
    for token in unknown & {*map(tokenizer.token, tokenizer.special_token_ids)}:
        ((found, _),) = encode_documents([f"are {token} fun"], tokenizer)
        assert (tokenizer.token_id(token) in found) == (kind != "wordpiece")


def test_a_sentence_begins_with_its_first_token():
    tokenizer = trained("gpt2", ["He is here. She is not. "] * 20, 300)
    ((ids, lengths),) = encode_documents(["He is here. She is not.\nHe is"], tokenizer)
    tokens = np.array([tokenizer.token(i) for i in ids])
    parts = ["".join(part) for part in np.split(tokens, np.cumsum(lengths)[:-1])]
    assert parts == ["HeĠisĠhere.", "ĠSheĠisĠnot.", "ĊHeĠis"]


def test_the_last_tenth_is_held_out():
    texts = ["ab\ncd\nef\n", "g" * 11]  # 20 characters, of which 18 are to stay
    assert hold_out(texts) == ([texts[0], "g" * 9], ["gg"])
    assert hold_out(["aaaa\nbb\ncccc\nddddddd"]) == (["aaaa\nbb\ncccc\n"], ["ddddddd"])
    with pytest.raises(InputError, match="too short to hold out a tenth"):
        hold_out(["a"])
