"""Shards, as TensorFlow and `ShardedCorpus` read them."""

import os

import numpy as np
import pytest

from tests.corpora.test_corpus_preparation import by_lines, drawn_documents, same_corpora
from tfnlp.corpora import prepare_corpus, shards
from tfnlp.objectives import ShardedCorpus, open_corpus
from tfnlp.utils.errors import InputError


def test_tensorflow_reads_the_shards(tokenizer, tmp_path):
    import tensorflow as tf

    (tmp_path / "a.txt").write_text("\n".join(drawn_documents(60)), encoding="utf-8")
    folder = tmp_path / "corpus"
    prepare_corpus([tmp_path / "a.txt"], tokenizer, folder, by_lines(0.0015))
    corpus = ShardedCorpus(folder)
    files = sorted(str(path) for path in folder.glob("*.tfrecord"))
    assert len(files) == 3
    names = ("token_ids", "sentence_lengths", "continues")
    features = {name: tf.io.RaggedFeature(tf.int64) for name in names}
    records = tf.data.TFRecordDataset(files).map(
        lambda record: tf.io.parse_single_example(record, features)
    )
    number = 0
    for number, record in enumerate(records, start=1):
        np.testing.assert_array_equal(record["token_ids"], corpus.document(number - 1))
        lengths = [len(ids) for ids in corpus.sentences(number - 1)]
        assert record["sentence_lengths"].numpy().tolist() == lengths
        assert not len(record["continues"])
    assert number == len(corpus) == 60


def test_another_format_is_refused(tokenizer, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("a film .")
    prepare_corpus([tmp_path / "a.txt"], tokenizer, tmp_path / "corpus")
    monkeypatch.setattr(shards, "FORMAT", 2)
    with pytest.raises(InputError, match=r"manifest\.json is damaged or of another format"):
        shards.read_manifest(tmp_path / "corpus")


def test_a_long_document_is_read_in_parts(tokenizer, tmp_path, monkeypatch):
    import tensorflow as tf

    monkeypatch.setattr(shards, "RECORD_TOKENS", 10)
    texts = drawn_documents(40) + ["a film " * 30 + ". x . x ."]
    (tmp_path / "a.txt").write_text("\n".join(texts), encoding="utf-8")
    folder = tmp_path / "corpus"
    prepare_corpus([tmp_path / "a.txt"], tokenizer, folder, by_lines(0.001))
    corpus, whole = ShardedCorpus(folder), open_corpus(tmp_path / "a.txt", tokenizer, "lines")
    same_corpora(corpus, whole)
    rng, read, reads = np.random.default_rng(0), os.pread, []
    monkeypatch.setattr(os, "pread", lambda *args: reads.append(args[1]) or read(*args))
    for _ in range(3000):
        index = int(rng.integers(len(corpus)))
        a, b = rng.integers(0, 12 + whole.token_counts[index], 2)
        for start, stop in ((a, b), (0, b), (a, a)):
            found = corpus.part(index, start, stop)
            assert found.dtype == "int32"
            np.testing.assert_array_equal(found, whole.part(index, start, stop))
    reads.clear()
    assert corpus.token_counts[40] == 65
    # Two sentences of two tokens are behind the one of 61: a record ends with a sentence.
    assert len(corpus.part(40, 61, 63)) == 2 and len(corpus.part(40, 60, 62)) == 2
    assert reads[0] < 100 < reads[1]
    # What continues a document says so.
    records = tf.data.TFRecordDataset(sorted(str(path) for path in folder.glob("*.tfrecord")))
    names = ("token_ids", "continues")
    features = {name: tf.io.RaggedFeature(tf.int64) for name in names}
    documents = []
    for record in records.map(lambda one: tf.io.parse_single_example(one, features)):
        documents += [] if len(record["continues"]) else [[]]
        documents[-1] += record["token_ids"].numpy().tolist()
    assert documents == [whole.document(i).tolist() for i in range(len(whole))]
    assert sum(shard["records"] for shard in corpus.manifest["shards"]) > 60


def test_a_record_ends_with_the_sentence_that_reaches_the_limit(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "RECORD_TOKENS", 6)
    (tmp_path / "a.txt").write_text("a film .\na film .\na film .", encoding="utf-8")
    prepare_corpus([tmp_path / "a.txt"], tokenizer, tmp_path / "corpus")
    (shard,) = shards.read_manifest(tmp_path / "corpus")["shards"]
    index = shards.read_index(tmp_path / "corpus", shard, 0)
    assert index[:, 1:].tolist() == [[6, 2, 0], [3, 1, 1]]
