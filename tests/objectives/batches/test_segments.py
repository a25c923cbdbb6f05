"""Texts cut from documents, against borders counted by hand."""

import numpy as np
import pytest

from tests.objectives.small import TEMPLATE
from tfnlp.objectives import Corpus, Segments
from tfnlp.objectives.batches.segments import stretch_ends
from tfnlp.text import LengthBatches
from tfnlp.utils.errors import InputError

# Documents of sentences of 2 + 3 + 1, 9, none, and 4 tokens.
CORPUS = Corpus.from_documents(
    [[[10, 11], [12, 13, 14], [15]], [[*range(20, 29)]], [], [[30, 31, 32, 33]]]
)


@pytest.mark.parametrize(
    ("sizes", "room", "filled", "ends"),
    [
        ([2, 3, 1], 5, True, [5, 6]),
        ([2, 3, 1], 6, True, [6]),
        ([2, 3, 1], 9, False, [2, 5, 6]),
        ([2, 12, 1, 3, 3], 5, True, [2, 7, 12, 15, 18, 21]),  # 12 = 5 + 5 + 2, which takes 1 along
        ([2, 12, 1], 5, False, [2, 7, 12, 14, 15]),
        ([10], 5, True, [5, 10]),
        ([0, 3, 0], 5, True, [3]),
        ([0], 5, True, []),
        ([], 5, True, []),
    ],
)
def test_segments_end_at_sentences_or_at_the_maximum_length(sizes, room, filled, ends):
    assert stretch_ends(sizes, room, filled) == ends


def test_segments_are_templated_and_batched():
    segments = Segments.from_corpus(CORPUS, TEMPLATE, max_length=7)
    assert len(segments) == 5
    assert segments.documents.tolist() == [0, 0, 1, 1, 3]
    assert segments.lengths.tolist() == [7, 3, 7, 6, 6]
    batch = segments.padded([1, 3], 0)
    assert batch["token_ids"].tolist() == [[2, 15, 3, 0, 0, 0], [2, 25, 26, 27, 28, 3]]
    assert batch["padding_mask"].tolist() == [[1, 1, 1, 0, 0, 0], [1] * 6]
    assert batch["segment_ids"].tolist() == [[0] * 6] * 2
    assert {x.dtype.name for x in batch.values()} == {"int32"}
    # Each token once in an epoch, whatever the order.
    batches = LengthBatches(segments, 2, shuffle=True, seed=1)
    ids = np.concatenate([b["token_ids"].ravel() for (b,) in batches.epoch(1)])
    assert sorted(ids[ids > 9]) == CORPUS.token_ids.tolist()
    lines = Segments.from_corpus(CORPUS, TEMPLATE, max_length=7, filled=False)
    assert lines.lengths.tolist() == [4, 5, 3, 7, 6, 6]
    other = Segments.from_corpus(Corpus.from_documents([[[10, 11]]]), TEMPLATE, 7)
    prints = {LengthBatches(s, 2).fingerprint() for s in (segments, lines, other)}
    assert len(prints) == 3
    with pytest.raises(InputError, match="max_length=2 leaves no room for text beside 2 other"):
        Segments.from_corpus(CORPUS, TEMPLATE, max_length=2)
