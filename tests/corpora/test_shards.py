"""Shards, as NumPy and `ShardedCorpus` read them."""

import numpy as np
import pytest

from tests.corpora.test_corpus_preparation import by_lines, drawn_documents, same_corpora
from tfnlp.corpora import prepare_corpus, shards
from tfnlp.corpora.corpus_preparation import ShardTexts
from tfnlp.corpora.file_ranges import FileRange
from tfnlp.objectives import ShardedCorpus, open_corpus
from tfnlp.utils.errors import InputError


def test_numpy_reads_the_shards(tokenizer, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("\n".join(drawn_documents(60)), encoding="utf-8")
    folder = tmp_path / "corpus"
    prepare_corpus([tmp_path / "a.txt"], tokenizer, folder, by_lines(0.0015))
    corpus = ShardedCorpus(folder)
    number = 0
    for shard in range(3):
        ids, sentences, documents = (
            np.load(shards.shard_path(folder, shard, f"{name}.npy")) for name in shards.ARRAYS
        )
        assert [array.dtype for array in (ids, sentences, documents)] == ["u2", "i4", "i4"]
        for tokens, count in documents:
            np.testing.assert_array_equal(ids[:tokens], corpus.document(number))
            lengths = [len(sentence) for sentence in corpus.sentences(number)]
            assert sentences[:count].tolist() == lengths and sum(lengths) == tokens
            ids, sentences, number = ids[tokens:], sentences[count:], number + 1
        assert not len(ids) and not len(sentences)
    assert number == len(corpus) == 60 and not shards.shard_path(folder, 3).exists()


@pytest.mark.parametrize("size, dtype", [(1 << 16, "uint16"), (1 + (1 << 16), "uint32")])
def test_ids_take_two_bytes_where_they_fit(tmp_path, monkeypatch, size, dtype):
    class Words:
        vocabulary_size, unknown_token_id = size, 0

    def encode(texts, tokenizer, sentences):
        for _ in texts:
            yield np.array([size - 1, 0, 1], "int32"), np.array([3])

    monkeypatch.setattr(shards, "encode_documents", encode)
    (tmp_path / "a.txt").write_text("a b\nc")
    texts = ShardTexts([FileRange(tmp_path / "a.txt", "lines")], "sentence")
    shard = shards.write_shard(tmp_path, 0, texts, tokenizer=Words(), sentences="lines")
    ids = shards.read_array(tmp_path, shard, 0, "ids")
    assert ids.dtype == dtype and ids.tolist() == [size - 1, 0, 1] * 2
    assert (shard["tokens"], shard["unknown"]) == (6, 2)


def test_another_format_is_refused(tokenizer, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("a film .")
    prepare_corpus([tmp_path / "a.txt"], tokenizer, tmp_path / "corpus")
    monkeypatch.setattr(shards, "FORMAT", shards.FORMAT + 1)
    with pytest.raises(InputError, match=r"manifest\.json is damaged or of another format"):
        shards.read_manifest(tmp_path / "corpus")


def test_parts_of_documents_are_those_of_the_corpus_in_memory(tokenizer, tmp_path):
    texts = drawn_documents(40) + ["a film " * 30 + ". x . x ."]
    (tmp_path / "a.txt").write_text("\n".join(texts), encoding="utf-8")
    folder = tmp_path / "corpus"
    prepare_corpus([tmp_path / "a.txt"], tokenizer, folder, by_lines(0.001))
    corpus, whole = ShardedCorpus(folder), open_corpus(tmp_path / "a.txt", tokenizer, "lines")
    same_corpora(corpus, whole)
    rng = np.random.default_rng(0)
    for _ in range(500):
        index = int(rng.integers(len(corpus)))
        a, b = rng.integers(0, 12 + whole.token_counts[index], 2)
        for start, stop in ((a, b), (0, b), (a, a)):
            ids = corpus.part(index, start, stop)
            assert ids.dtype == "int32"
            np.testing.assert_array_equal(ids, whole.part(index, start, stop))
