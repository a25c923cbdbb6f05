"""Subword tokenizers against those of `transformers`."""

import gzip

import pytest

from tests.text.family_tokenizers import CLASSES, ids_of, saved, theirs_of, trained
from tests.text.family_tokenizers import HARD_TEXTS as TEXTS
from tfnlp.text import load_tokenizer

pytest.importorskip("transformers", reason="parity needs .[parity]")


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


@pytest.mark.parametrize("family", ["roberta", "albert", "xlnet", "deberta-v2", "xlm-roberta"])
def test_every_real_line_gets_the_ids_of_transformers(family, lines, tmp_path):
    tokenizer = trained(family, lines[::20], 3000)
    assert 2500 < tokenizer.vocabulary_size <= 3001
    saved(tokenizer, tmp_path, family)
    theirs = theirs_of(tmp_path, family)
    expected = theirs(lines)["input_ids"]
    found = ids_of(load_tokenizer(tmp_path), lines)
    different = [i for i in range(len(lines)) if found[i] != expected[i]]
    assert not different, lines[different[0]]


@pytest.mark.parametrize("family", CLASSES)
def test_pairs_and_segments(family, tmp_path):
    tokenizer = trained(family, TEXTS, 400)
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
    assert segments == {"roberta": {0}, "xlm-roberta": {0}, "xlnet": {0, 1, 2}}.get(family, {0, 1})
    cut = tokenizer.encode(TEXTS, pairs, max_length=12)
    assert max(len(e.token_ids) for e in cut) == 12
    assert [e.truncated for e in cut] == [len(e.token_ids) > 12 for e in found]
