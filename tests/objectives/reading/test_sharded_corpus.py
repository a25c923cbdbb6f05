"""A corpus on disk: damage of any kind is refused, or does no harm."""

import concurrent.futures
import re
import shutil

import numpy as np
import pytest

from tfnlp.corpora import CorpusSettings, prepare_corpus
from tfnlp.objectives import ShardedCorpus, reading_settings
from tfnlp.objectives.reading import sharded_corpus
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json


@pytest.fixture(scope="module")
def prepared(tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    rng = np.random.default_rng(0)
    words = ["a", "fine", "film", "dull", "영화", "정말", "x", "zzz", "."]
    texts = (" ".join(rng.choice(words, rng.integers(1, 60))) for _ in range(120))
    (folder / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    prepare_corpus(
        [folder / "texts.txt"],
        tokenizer,
        folder / "corpus",
        CorpusSettings("lines", shard_mb=0.003),
    )
    return folder / "corpus"


def documents(folder):
    corpus = ShardedCorpus(folder)
    counts = corpus.token_counts.tolist(), corpus.sentence_counts.tolist()
    lengths = [corpus.sentence_lengths(i).tolist() for i in range(len(corpus))]
    ids = [[s.tolist() for s in corpus.sentences(i)] for i in range(len(corpus))]
    return counts, lengths, ids, [corpus.document(i).tolist() for i in range(len(corpus))]


def test_200_flipped_bytes_are_refused_or_harmless(prepared, tmp_path):
    expected, rng = documents(prepared), np.random.default_rng(0)
    files = sorted(prepared.iterdir())
    assert len(files) > 9
    refused = dict.fromkeys(("ids.npy", "sentences.npy", "documents.npy", "json"), 0)
    for _ in range(200):
        kind = rng.choice(list(refused))
        path = rng.choice([path for path in files if path.name.endswith(f".{kind}")])
        folder = tmp_path / "flipped"
        shutil.copytree(prepared, folder)
        broken = bytearray(path.read_bytes())
        broken[rng.integers(len(broken))] ^= 1 << rng.integers(8)
        (folder / path.name).write_bytes(broken)
        try:
            assert documents(folder) == expected
        except InputError as e:
            assert path.name in str(e) or kind == "json"
            refused[kind] += 1
        else:
            assert kind == "json"  # in the name of a text file
        shutil.rmtree(folder)
    assert min(refused.values()) > 30


def test_cut_and_missing_files_are_refused_at_opening(prepared, tmp_path):
    folder = shutil.copytree(prepared, tmp_path / "cut")
    ids, counts = folder / "shard-00001.ids.npy", folder / "shard-00001.documents.npy"
    whole = ids.read_bytes()
    for size in (*range(0, len(whole), 97), len(whole) - 1):
        ids.write_bytes(whole[:size])
        with pytest.raises(InputError, match=f"{ids.name} has {size} bytes, but {len(whole)}"):
            ShardedCorpus(folder)
    other, manifest = folder / "shard-00002.documents.npy", folder / "manifest.json"
    for change, name in (
        (ids.unlink, ids.name),
        (lambda: ids.write_bytes(whole) and counts.write_bytes(other.read_bytes()), counts.name),
        (counts.unlink, counts.name),
        (lambda: manifest.write_text("{"), "JSON"),
        (lambda: manifest.write_text('{"format": 1}'), "another format"),
    ):
        change()
        with pytest.raises(InputError, match=name):
            ShardedCorpus(folder)


def test_damaged_files_are_named_when_they_are_first_read(prepared, tmp_path):
    folder = shutil.copytree(prepared, tmp_path / "damaged")
    first = read_json(folder / "manifest.json")["shards"][0]["documents"]
    path = folder / "shard-00001.ids.npy"
    broken = bytearray(path.read_bytes())
    broken[-1] ^= 4
    path.write_bytes(broken)
    corpus = ShardedCorpus(folder)
    assert len(corpus.document(first - 1)) == corpus.token_counts[first - 1]
    message = re.escape(f"{path} is damaged or of another shard; copy")
    for read in (corpus.document, corpus.sentences):
        with pytest.raises(InputError, match=message):
            read(first)
    assert len(corpus.sentence_lengths(first)) == corpus.sentence_counts[first]
    (folder / "shard-00002.sentences.npy").unlink()
    with pytest.raises(InputError, match=r"00002.sentences.npy cannot be read"):
        [corpus.sentence_lengths(i) for i in range(len(corpus))]


def test_many_threads_and_few_mapped_files_read_the_same(prepared, monkeypatch):
    monkeypatch.setattr(sharded_corpus, "MAPPED_FILES", 1)
    corpus = ShardedCorpus(prepared)
    expected = documents(prepared)[3]
    order = np.random.default_rng(0).integers(0, len(corpus), 4000)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for i, ids in zip(order, pool.map(corpus.document, order), strict=True):
            assert ids.tolist() == expected[i]
    assert corpus._array.cache_info().currsize == 1


def test_the_folder_stores_the_separator_of_documents(prepared, tokenizer, tmp_path):
    """Flags do not count beside a prepared folder, nor in files with columns."""
    texts, table = prepared.parent / "texts.txt", tmp_path / "a.tsv.gz"
    table.write_bytes(b"")
    rows = tmp_path / "rows.tsv"
    rows.write_text("sentence\na good film\n")
    prepare_corpus([rows], tokenizer, tmp_path / "rows")
    for paths, documents in (
        ([prepared], {"documents": "lines"}),
        ([tmp_path / "rows"], {}),
        ([tmp_path / "rows", prepared], {"documents": "lines"}),
        ([tmp_path / "rows", texts], {"documents": "files"}),
        ([texts], {"documents": "files"}),
        ([table, texts], {"documents": "files"}),
        ([table], {}),
    ):
        assert reading_settings(paths, "files", 16) == {"max_length": 16} | documents
