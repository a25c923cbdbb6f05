"""Streams of documents and the batches that read them, in NumPy alone."""

import itertools

import numpy as np
import pytest

from tfnlp.objectives import CausalLM, Corpus
from tfnlp.objectives.batches.token_stream import Lane, TokenStream
from tfnlp.text.tokenizers.special_tokens import end_token_id
from tfnlp.utils.errors import InputError

END = 1
DOCUMENTS = [[[5, 6], [7]], [[8, 9, 10]], [[]], [[11], [], [12, 13]], [[14, 15], [16, 17, 18]]]
CORPUS = Corpus.from_documents(DOCUMENTS)
# Documents 4, 1, 2 (of no token), 0, 3, with their ends; a sentence begins at each of STARTS.
ORDER = [4, 1, 2, 0, 3]
FLAT = [14, 15, 16, 17, 18, END, 8, 9, 10, END, 5, 6, 7, END, 11, 12, 13, END]
STARTS = [0, 2, 6, 10, 12, 14, 15]


class Tokens:
    """As much of a tokenizer as a stream asks for."""

    pad_token_id = 0

    def __init__(self, **ids):
        self.ids = ids or {"<|endoftext|>": END}

    def token_id(self, token):
        return self.ids.get(token)


def large_corpus(seed=0, documents=12, lowest=2):
    rng = np.random.default_rng(seed)
    return Corpus.from_documents(
        [
            [rng.integers(lowest, 50, rng.integers(1, 9)) for _ in range(rng.integers(1, 6))]
            for _ in range(documents)
        ]
    )


def test_a_stream_is_its_documents_and_their_ends():
    stream = TokenStream(CORPUS, ORDER, END)
    assert len(stream) == len(FLAT)
    for start in range(len(FLAT)):
        bounds = [*STARTS, len(FLAT)]
        i = np.searchsorted(bounds, start, "right")
        assert stream.sentence(start) == (bounds[i - 1], bounds[i])
        for stop in range(start + 1, len(FLAT) + 1):
            assert stream.read(start, stop).tolist() == FLAT[start:stop]
            assert stream.borders(start, stop).tolist() == [s for s in STARTS if start < s < stop]
    assert TokenStream(CORPUS, ORDER).read(0, 9).tolist() == [14, 15, 16, 17, 18, 8, 9, 10, 5]


def test_a_lane_reads_backwards():
    stream = TokenStream(CORPUS, ORDER, END)
    forward, backward = (Lane(stream, 3, 10, b) for b in (False, True))
    assert forward.read(0, 10).tolist() == FLAT[3:13]
    assert backward.read(0, 10).tolist() == FLAT[3:13][::-1]
    assert backward.read(2, 5).tolist() == FLAT[3:13][::-1][2:5]
    assert forward.borders(0, 10).tolist() == [3, 7, 9]  # 6, 10 and 12 of the stream
    assert backward.borders(0, 10).tolist() == [1, 3, 7]
    assert forward.borders(3, 9).tolist() == [7] and backward.borders(1, 7).tolist() == [3]
    # Each sentence from where it is read on; the first of the lane from the lane's beginning.
    assert [forward.sentence_start(p) for p in range(10)] == [0] * 3 + [3] * 4 + [7] * 2 + [9]
    assert [backward.sentence_start(p) for p in range(10)] == [0] + [1] * 2 + [3] * 4 + [7] * 3


def test_the_end_token_is_the_tokenizers():
    assert end_token_id(Tokens(**{"</s>": 2, "<sep>": 4, "<eod>": 7})) == 7
    assert end_token_id(Tokens(**{"[SEP]": 3, "</s>": 2})) == 2
    assert end_token_id(Tokens(**{"[UNK]": 3})) is None


@pytest.mark.parametrize("length", [4, 7])
def test_lanes_give_the_stream_back(length):
    corpus = large_corpus()
    batches = CausalLM(memory=True).batches(corpus, Tokens(), 3, length, seed=5)
    for epoch in (0, 1):
        found = list(batches.epoch(epoch))
        assert len(found) == len(batches) == batches.rows // 3
        stream = batches.stream(epoch).read(0, batches.tokens)
        assert sorted(stream) == sorted([*corpus.token_ids, *[END] * len(corpus)])
        size = batches.lane_size
        assert size == (len(stream) - 1) // 3
        for lane in range(3):
            rows = [
                (inputs["token_ids"][lane], labels[lane], inputs["padding_mask"][lane] > 0)
                for inputs, labels in found
            ]
            ids = np.concatenate([i[real] for i, _, real in rows])
            labels = np.concatenate([label[real] for _, label, real in rows])
            place = lane * size
            np.testing.assert_array_equal(ids, stream[place : place + size])
            np.testing.assert_array_equal(labels, stream[place + 1 : place + size + 1])
            assert all((label[~real] == -100).all() for _, label, real in rows)
        flags = [inputs["continues"].tolist() for inputs, _ in found]
        assert flags == [[0, 0, 0], *[[1, 1, 1]] * (len(found) - 1)]
    assert batches.stream(0).read(0, 40).tolist() != stream[:40].tolist()  # another order


def test_segments_without_memory_are_the_stream_once():
    corpus = large_corpus()
    batches = CausalLM().batches(corpus, Tokens(), 4, 7, seed=2)
    stream = batches.stream(3).read(0, batches.tokens)
    pairs = []
    for inputs, labels in batches.epoch(3):
        assert inputs.keys() == {"token_ids", "segment_ids", "padding_mask", "next_token_ids"}
        assert labels.shape[1] == 7 and (inputs["next_token_ids"] == labels).all()
        assert not np.shares_memory(inputs["next_token_ids"], labels)
        for ids, label in zip(inputs["token_ids"], labels, strict=True):
            pairs += [(a, b) for a, b in zip(ids, label, strict=True) if b != -100]
    expected = list(itertools.pairwise(stream))
    assert sorted(pairs) == sorted(expected) and pairs != expected
    in_order = CausalLM().batches(corpus, Tokens(), 4, 7, shuffle=False)
    flat = np.concatenate([i["token_ids"].ravel() for i, _ in in_order.epoch()])
    expected = TokenStream(corpus, range(len(corpus)), END).read(0, in_order.tokens - 1)
    np.testing.assert_array_equal(flat[: len(expected)], expected)


def test_segments_without_memory_have_another_order_in_each_epoch():
    document = Corpus.from_documents([[np.arange(2, 42)]])  # one has one order
    batches = CausalLM().batches(document, Tokens(), 1, 4, seed=2)
    orders = [[int(i["token_ids"][0, 0]) for i, _ in batches.epoch(n)] for n in (0, 1)]
    assert sorted(orders[0]) == sorted(orders[1]) and orders[0] != orders[1]


@pytest.mark.parametrize("memory", [False, True])
def test_padding_is_no_token(memory):
    batches = CausalLM(memory).batches(large_corpus(), Tokens(), 2, 5, seed=1)
    masks = [inputs["padding_mask"].sum() for inputs, _ in batches.epoch(2)]
    assert len(batches.lengths) == batches.rows and batches.lengths.max() == 5
    assert batches.lengths.sum() == sum(masks)
    assert sum(masks) == (2 * batches.lane_size if memory else batches.tokens - 1)


def test_the_fingerprint_covers_all_settings():
    def prints(corpus=None, memory=False, tokens=None, size=2, length=5, **options):
        return (
            CausalLM(memory)
            .batches(corpus or large_corpus(), tokens or Tokens(), size, length, **options)
            .fingerprint()
        )

    found = {
        *(prints(), prints(large_corpus(1)), prints(memory=True), prints(size=3)),
        *(prints(length=6), prints(seed=1), prints(shuffle=False)),
        prints(tokens=Tokens(**{"</s>": 3})),
    }
    assert len(found) == 8 and prints() in found


def test_too_few_tokens_are_refused():
    with pytest.raises(InputError, match="There are 18 tokens, but a segment and the token after"):
        CausalLM().batches(CORPUS, Tokens(), 2, 18)
    with pytest.raises(InputError, match="but 4 lanes of max_length=5 and the token after tak"):
        CausalLM(memory=True).batches(CORPUS, Tokens(), 4, 5)
    assert len(CausalLM(memory=True).batches(CORPUS, Tokens(), 3, 5)) == 1
