"""Texts of several documents, against texts filled by hand."""

import numpy as np

from tests.objectives.small import TEMPLATE, numbered
from tfnlp.objectives import Segments
from tfnlp.objectives.batches.packed_segments import join_documents, pack_segments
from tfnlp.text import LengthBatches

# Tokens 10 to 14, 15 to 21, 22 to 23, none, 24 to 26, 27 to 28.
CORPUS = numbered([2, 3], [4, 3], [2], [], [3], [2])


def rows_of(texts, **options):
    return texts.padded(range(len(texts)), 0, **options)


def test_documents_fill_texts_that_they_leave_the_least_room_in():
    segments = Segments.from_corpus(CORPUS, TEMPLATE, max_length=10)
    assert segments.lengths.tolist() == [7, 9, 4, 5, 4]
    texts = pack_segments(segments, 10)
    # 9 alone; 7; 5 and 4; 4.
    assert sorted(texts.lengths.tolist()) == [4, 7, 9, 9]
    batch = rows_of(texts)
    assert batch["token_ids"][2].tolist() == [2, 24, 25, 26, 3, 2, 22, 23, 3]
    assert batch["positions"][2].tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3]
    assert batch["positions"][3].tolist() == [0, 1, 2, 3, 0, 0, 0, 0, 0]
    assert batch["padding_mask"].sum(1).tolist() == texts.lengths.tolist()
    batches = LengthBatches(texts, 2, shuffle=True, fixed_length=12)
    inputs = [inputs for (inputs,) in batches.epoch(1)]
    assert {x.shape[1] for batch in inputs for x in batch.values()} == {12}
    assert batches.signature()[0].keys() == inputs[0].keys()
    ids = np.concatenate([batch["token_ids"].ravel() for batch in inputs])
    assert sorted(ids[ids > 9]) == CORPUS.token_ids.tolist()


def test_many_documents_leave_little_room():
    rng = np.random.default_rng(0)
    corpus = numbered(*([size] for size in rng.integers(1, 60, 300)))
    segments = Segments.from_corpus(corpus, TEMPLATE, max_length=64)
    texts = pack_segments(segments, 64)
    assert texts.lengths.max() == 64 and sorted(texts.order) == [*range(300)]
    assert texts.lengths.sum() == segments.lengths.sum()
    # Half of all tokens would be padding if each document were a text of this length.
    assert texts.lengths.sum() / (64 * 300) < 0.53
    assert texts.lengths.sum() / (64 * len(texts)) > 0.95


def test_sentences_fill_texts_across_documents():
    texts = join_documents(CORPUS, TEMPLATE, max_length=10)
    batch = rows_of(texts)
    assert "positions" not in batch
    assert batch["token_ids"].tolist() == [
        [2, 10, 11, 12, 13, 14, 3, 0, 0],
        [2, *range(15, 22), 3],
        [2, 22, 23, 3, 24, 25, 26, 3, 0],
        [2, 27, 28, 3, 0, 0, 0, 0, 0],
    ]
    assert texts.lengths.tolist() == [7, 9, 8, 4]
    long = join_documents(numbered([2], [9, 1]), TEMPLATE, max_length=6)
    assert [row[row > 0].tolist() for row in rows_of(long)["token_ids"]] == [
        [2, 10, 11, 3],
        [2, 12, 13, 14, 15, 3],
        [2, 16, 17, 18, 19, 3],
        [2, 20, 21, 3],
    ]
    # A text that begins anew has no separator before it, and neither does an empty document.
    for sizes, lengths in (([[7], [2], [5]], [9, 10]), ([[5], [0], [2]], [10])):
        assert join_documents(numbered(*sizes), TEMPLATE, 10).lengths.tolist() == lengths
    segments = Segments(**_fields(texts))
    packed = pack_segments(segments, 10), pack_segments(segments, 20)
    assert len({x.fingerprint() for x in (texts, *packed)}) == 3


def _fields(texts):
    names = ("corpus", "template", "documents", "starts", "sizes")
    return {name: getattr(texts, name) for name in names}
