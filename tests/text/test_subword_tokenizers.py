"""Byte-level BPE and unigram tokenizers against those of `transformers`, on real texts."""

import gzip
import json
import pathlib

import numpy as np
import pytest

from tfnlp.text import (
    UnigramTokenizer,
    WordPieceTokenizer,
    load_tokenizer,
    train_byte_level_bpe,
    train_unigram,
)
from tfnlp.text.tags import first_tokens
from tfnlp.text.tokenizer_loading import tokenizer_statistics
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


def train(family, texts, size):
    if family in ("gpt2", "roberta", "deberta"):
        return train_byte_level_bpe(texts, size, family)
    return train_unigram(texts, size, family)


def saved(tokenizer, folder, family):
    tokenizer.save(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": family}))
    return folder


def theirs_of(folder, family):
    return getattr(transformers, CLASSES[family]).from_pretrained(folder)


@pytest.fixture(scope="module")
def lines(data_dir):
    """Every text of SST-2, NSMC and the WikiText-2 test file."""
    found = []
    for name in ("train.tsv", "dev.tsv", "test.tsv"):
        path = data_dir / "sst2" / name
        found += [line.split("\t")[0] for line in path.read_text().splitlines()[1:]]
    for name in ("train.tsv.gz", "dev.tsv", "test.tsv"):
        path = data_dir / "nsmc" / name
        data = path.read_bytes()
        text = (gzip.decompress(data) if name.endswith("gz") else data).decode()
        found += [line.split("\t")[0] for line in text.splitlines()[1:]]
    wiki = (data_dir / "corpora" / "wikitext2.test.txt").read_text()
    return found + wiki.splitlines()


@pytest.mark.parametrize("family", CLASSES)
def test_every_real_line_gets_the_ids_of_transformers(family, lines, tmp_path):
    tokenizer = train(family, lines[::20], 3000)
    assert 2500 < tokenizer.vocabulary_size <= 3001
    saved(tokenizer, tmp_path, family)
    theirs = theirs_of(tmp_path, family)
    expected = theirs(lines)["input_ids"]
    for source in (tokenizer, load_tokenizer(tmp_path)):
        found = [e.token_ids for e in source.encode(lines)]
        different = [i for i in range(len(lines)) if found[i] != expected[i]]
        assert not different, lines[different[0]]


@pytest.mark.parametrize("family", CLASSES)
def test_pairs_and_segments(family, tmp_path):
    tokenizer = train(family, TEXTS, 400)
    theirs = theirs_of(saved(tokenizer, tmp_path, family), family)
    pairs = TEXTS[::-1]
    found = tokenizer.encode(TEXTS, pairs)
    expected = theirs(TEXTS, pairs)["input_ids"]
    if family == "deberta":  # version 5 has two [SEP] between, DeBERTa itself one
        separator = tokenizer.token_id("[SEP]")
        for ids in expected:
            del ids[ids.index(separator)]
    assert [e.token_ids for e in found] == expected
    assert tokenizer.decode(expected) == [
        theirs.decode(ids, skip_special_tokens=True) for ids in expected
    ]
    segments = set().union(*(e.segment_ids for e in found))
    assert segments == {"roberta": {0}, "xlnet": {0, 1, 2}}.get(family, {0, 1})
    cut = tokenizer.encode(TEXTS, pairs, max_length=12)
    assert max(len(e.token_ids) for e in cut) == 12
    assert [e.truncated for e in cut] == [len(e.token_ids) > 12 for e in found]


def test_bpe_from_vocabulary_and_merges_alone(tmp_path):
    tokenizer = train("roberta", TEXTS, 400)
    saved(tokenizer, tmp_path, "roberta")
    expected = [e.token_ids for e in tokenizer.encode(TEXTS)]
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).unlink()
    assert [e.token_ids for e in load_tokenizer(tmp_path).encode(TEXTS)] == expected
    (tmp_path / "merges.txt").write_text("#version: 0.2\nĠ t h\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"merges\.txt, line 2"):
        load_tokenizer(tmp_path)
    (tmp_path / "merges.txt").write_text("#version: 0.2\n영 화\n", encoding="utf-8")
    with pytest.raises(InputError, match="do not belong to the vocabulary"):
        load_tokenizer(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(InputError, match=r"merges\.txt is missing"):
        load_tokenizer(tmp_path)


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


@pytest.mark.parametrize("family", CLASSES)
def test_offsets_point_at_the_characters(family):
    tokenizer = train(family, TEXTS, 400)
    text = TEXTS[0]
    encoding = tokenizer.encode([text], [TEXTS[1]], offsets=True)[0]
    for (start, end), source in zip(encoding.offsets, encoding.sources, strict=True):
        assert source is not None or start == end == 0
    first = [o for o, s in zip(encoding.offsets, encoding.sources, strict=True) if s == 0]
    covered = {i for start, end in first for i in range(start, end)}
    assert covered >= {i for i, c in enumerate(text) if c != " "}
    assert text[slice(*first[-1])] == "."


@pytest.mark.parametrize("family", CLASSES)
def test_words_and_windows(family):
    tokenizer = train(family, TEXTS, 400)
    words = TEXTS[0].split()
    windows = tokenizer.encode_words([words, words[:1]], max_length=8, stride=2)
    assert {w.example for w in windows} == {0, 1} and len(windows) > 2
    seen = [w for window in windows if window.example == 0 for w in window.words]
    assert {w for w in seen if w is not None} == set(range(len(words)))
    # Each word has a first token, by which it is tagged.
    (whole,) = tokenizer.encode_words([words], 64)
    assert [word for word, _ in first_tokens(whole)] == list(range(len(words)))
    # A word is cut into the same pieces wherever it stands.
    again = tokenizer.encode_words([["quick", "quick"]], 64)[0]
    ids = np.array(again.token_ids)
    places = np.array([-1 if w is None else w for w in again.words])
    assert ids[places == 0].tolist() == ids[places == 1].tolist()
    windows = tokenizer.encode_windows(["fox ?"], [TEXTS[0]], 12, stride=2)
    assert len(windows) > 1
    ends = [[o for o, s in zip(w.offsets, w.sources, strict=True) if s == 1] for w in windows]
    assert ends[0][0][0] == 0 and ends[-1][-1][1] == len(TEXTS[0])


def test_training_is_deterministic_and_bad_sizes_are_named():
    first, second = (train_byte_level_bpe(TEXTS, 400).settings() for _ in range(2))
    assert first == second
    with pytest.raises(InputError, match="at least 261"):
        train_byte_level_bpe(TEXTS, 200)
    with pytest.raises(InputError, match="vocabulary_size=12 is less than the characters"):
        train_unigram(TEXTS, 12, "xlnet")
    with pytest.raises(InputError, match="lack"):
        UnigramTokenizer([("a", -1.0)], "albert")


def test_how_well_a_tokenizer_fits_texts():
    wordpiece = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "film", "##s"])
    # a film ##s / [UNK] a: 5 tokens of 4 words, one of them unknown.
    assert tokenizer_statistics(wordpiece, ["A films", "영화 a"]) == (5 / 4, 1 / 5)
    assert tokenizer_statistics(wordpiece, [""]) == (0, 0)
    texts = ["the film is dull", "정말 좋다 영화"] * 3
    unigram, bpe = train_unigram(texts, 60, "xlnet"), train_byte_level_bpe(texts, 300)
    assert tokenizer_statistics(unigram, texts)[1] == tokenizer_statistics(bpe, ["쀍"])[1] == 0
    assert tokenizer_statistics(unigram, ["쀍"]) == (2, 0.5)  # the space before it is known


@pytest.mark.parametrize("model", ["transfo-xl", "openai-gpt"])
def test_a_family_without_a_tokenizer_of_its_own_takes_any(model, tmp_path):
    """Bytes for a Transformer-XL, and no GPT's own, nor what another family's model has."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model}))
    with pytest.raises(InputError, match=f"no tokenizer for the family '{model}'"):
        load_tokenizer(tmp_path)
    for family in ("gpt2", "roberta", "xlnet"):
        tokenizer = train(family, TEXTS, 300)
        tokenizer.save(tmp_path)
        found = load_tokenizer(tmp_path)
        assert type(found) is type(tokenizer) and found.family == family
        assert [e.token_ids for e in found.encode(TEXTS)] == [
            e.token_ids for e in tokenizer.encode(TEXTS)
        ]
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "roberta"}))
    with pytest.raises(InputError, match="the family 'roberta' and the tokenizer one for 'xlnet'"):
        tokenizer.save(tmp_path)


def test_a_tokenizer_of_another_kind_is_named(tmp_path):
    saved(train("roberta", TEXTS, 300), tmp_path, "albert")
    with pytest.raises(InputError, match="not a SentencePiece unigram tokenizer"):
        load_tokenizer(tmp_path)
    saved(train("albert", TEXTS, 200), tmp_path / "b", "gpt2")
    with pytest.raises(InputError, match="not a byte-level BPE"):
        load_tokenizer(tmp_path / "b")
