"""Text pairs: texts, labels and batches, and lengths that do not tell the label."""

import collections

import numpy as np
import pytest

from tests.objectives.small import TEMPLATE, numbered
from tfnlp.models import AlbertConfig, BertConfig, RobertaConfig
from tfnlp.objectives import Corpus, NextSentence, SentenceOrder
from tfnlp.objectives.batches.passages import Passages
from tfnlp.objectives.sentence_pairs import truncate_pair
from tfnlp.text import WordPieceTokenizer
from tfnlp.utils.errors import InputError

TOKENIZER = WordPieceTokenizer(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij", *(f"w{i}" for i in range(2000))]
)


def many(documents=40, seed=0):
    rng = np.random.default_rng(seed)
    return numbered(*(rng.integers(1, 9, rng.integers(2, 12)) for _ in range(documents)))


def test_pairs_are_the_next_sentences_or_of_another_document():
    corpus = numbered([3, 2, 4], [1, 1], [], [6])
    passages = Passages.from_corpus(corpus, TEMPLATE, 40, 0.0, seed=0)
    assert passages.counts.tolist() == [3, 2] and passages.lengths.tolist() == [12, 5]
    rng, found = np.random.default_rng(0), collections.Counter()
    for _ in range(4000):
        first, second, label = NextSentence().draw(passages, 0, rng)
        found[tuple(first), tuple(second), label] += 1
    a, b, c = (tuple(s) for s in corpus.sentences(0))
    _, e = (tuple(s) for s in corpus.sentences(1))
    (f,) = (tuple(s) for s in corpus.sentences(3))
    # Only `f` has the 6 tokens that are due after `a`, and the 4 after `a + b`.
    expected = {(a, b + c, 0), (a + b, c, 0), (a, f, 1), (a + b, f, 1)}
    expected = dict.fromkeys(expected, 1 / 4)
    assert found.keys() == expected.keys()
    for key, share in expected.items():
        assert abs(found[key] / 4000 - share) < 3 * np.sqrt(share * (1 - share) / 4000), key
    # One token is due: of 16 sentences the nearest, which lack `b` in (8 / 9)^16 of all cases.
    drawn = (NextSentence().draw(passages, 1, rng)[1:] for _ in range(4000))
    drawn = collections.Counter((tuple(text), label) for text, label in drawn)
    assert drawn.keys() <= {(e, 0), (a, 1), (b, 1), (c, 1), (f, 1)}
    share = (1 - (8 / 9) ** 16) / 2
    assert abs(drawn[b, 1] / 4000 - share) < 3 * np.sqrt(share * (1 - share) / 4000)
    swapped = collections.Counter()
    for _ in range(4000):
        first, second, label = SentenceOrder().draw(passages, 0, rng)
        swapped[tuple(first), tuple(second), label] += 1
    texts = [(a, b + c), (a + b, c)]
    assert swapped.keys() == {(*t, 0) for t in texts} | {(*t[::-1], 1) for t in texts}
    for count in swapped.values():
        assert abs(count / 4000 - 0.25) < 3 * np.sqrt(0.25 * 0.75 / 4000)


@pytest.mark.parametrize(
    ("objective", "most_sentences"), [(NextSentence(), 7), (SentenceOrder(), 60)]
)
def test_lengths_do_not_tell_the_label(objective, most_sentences):
    """The best guess by both lengths, from half of the pairs, of the other half."""
    rng, length = np.random.default_rng(0), 512
    documents = [
        [np.zeros(int(size) + 1, "int32") for size in rng.gamma(3, 8, sentences)]
        for sentences in rng.integers(2, most_sentences, 6000)
    ]
    passages = Passages.from_corpus(
        Corpus.from_documents(documents), TEMPLATE, length, 0.1, seed=0
    )
    pairs = []
    for index in range(len(passages)):
        *texts, label = objective.draw(passages, index, rng)
        texts = truncate_pair(*texts, passages.sizes[index], rng)
        pairs.append((*map(len, texts), label))
    first, second, labels = rng.permutation(pairs).T
    full = first + second == length - TEMPLATE.pair_size
    _, cells = np.unique(np.stack([first // 16, second // 16, full]), axis=1, return_inverse=True)
    learned, tried = np.split(np.arange(len(labels)), [len(labels) // 2])
    votes = np.bincount(cells[learned], 2 * labels[learned] - 1, cells.max() + 1)
    right = np.mean((votes[cells[tried]] > 0) == labels[tried])
    assert abs(right - 0.5) < 3 * 0.5 / np.sqrt(len(tried)) + 0.01


def test_pairs_are_cut_a_token_at_a_time_from_the_longer():
    """Against BERT's rule as a loop, over all small sizes."""
    rng = np.random.default_rng(0)
    for a in range(1, 9):
        for b in range(1, 9):
            for size in range(2, 17):
                sizes = [a, b]
                while sum(sizes) > size:
                    sizes[0 if sizes[0] > sizes[1] else 1] -= 1
                first, second = truncate_pair(np.arange(a), np.arange(b), size, rng)
                assert [len(first), len(second)] == sizes
                assert (np.diff(first) == 1).all() and (np.diff(second) == 1).all()
    # 2 of 10 are cut: both at the front, one at each side or both at the end as 1 : 2 : 1.
    fronts = [truncate_pair(np.arange(10), np.arange(3), 11, rng)[0][0] for _ in range(4000)]
    found = collections.Counter(map(int, fronts))
    for front, share in ((0, 0.25), (1, 0.5), (2, 0.25)):
        assert abs(found[front] / 4000 - share) < 3 * np.sqrt(share * (1 - share) / 4000)


@pytest.mark.parametrize("objective", [NextSentence(), SentenceOrder()])
def test_batches_are_templated_masked_and_balanced(objective):
    corpus = many()
    batches = objective.batches(corpus, TOKENIZER, 4, 20, seed=5)
    labels, lengths = [], collections.Counter()
    hidden = tokens = 0
    for epoch in range(25):
        for inputs, y in batches.epoch(epoch):
            ids, positions = inputs["token_ids"].copy(), inputs["masked_positions"]
            real = y["tokens"] != -100
            rows = np.nonzero(real)[0]
            ids[rows, positions[real]] = y["tokens"][real]
            hidden += real.sum()
            for row, segments, mask, label in zip(
                ids, inputs["segment_ids"], inputs["padding_mask"], y["pair"], strict=True
            ):
                row, segments = row[mask > 0], segments[mask > 0]
                assert row[0] == 2 and row[-1] == 3 and (row == 3).sum() == 2
                border = int(np.argmax(row == 3))
                assert segments.tolist() == [0] * (border + 1) + [1] * (len(row) - border - 1)
                first, second = row[1:border], row[border + 1 : -1]
                assert (np.diff(first) == 1).all() and (np.diff(second) == 1).all()
                assert len(first) and len(second) and len(row) <= 20
                tokens += len(first) + len(second)
                document = [
                    int(np.searchsorted(np.cumsum(corpus.token_counts), text[0] - 10, "right"))
                    for text in (first, second)
                ]
                if isinstance(objective, NextSentence):
                    assert (document[0] == document[1]) == (label == 0)
                    assert label or second[0] > first[-1]
                else:
                    assert document[0] == document[1]
                    assert (second[0] > first[-1]) == (label == 0)
                lengths[len(row)] += 1
            labels += y["pair"].tolist()
    assert len(labels) == 25 * len(batches.lengths) and len(labels) > 1500
    assert abs(np.mean(labels) - 0.5) < 3 * 0.5 / np.sqrt(len(labels))
    assert 0.12 < hidden / tokens < 0.18
    assert max(lengths) == max(batches.lengths) == 20


def test_pairs_are_padded_to_a_fixed_length():
    batches = NextSentence().batches(many(), TOKENIZER, 4, 20)
    batches.fixed_length = 24
    for inputs, labels in batches.epoch():
        assert inputs["token_ids"].shape == inputs["padding_mask"].shape
        assert inputs["token_ids"].shape[1] == 24 and inputs["padding_mask"].sum(1).max() <= 20
        assert labels["tokens"].shape[1] == 16


def test_corpora_without_pairs_are_refused():
    lone, one = numbered([3], [4], [], [2]), numbered([3, 2, 4, 2])
    for objective, corpus, length, words in (
        (SentenceOrder(), lone, 20, "3 documents .* 0 of them"),
        (SentenceOrder(), one, 4, "max_length=4"),
        (NextSentence(), one, 20, "pairs take 2"),
    ):
        with pytest.raises(InputError, match=words):
            objective.batches(corpus, TOKENIZER, 4, length)
    assert len(SentenceOrder().batches(one, TOKENIZER, 4, 20)) == 1
    NextSentence().check(AlbertConfig(), TOKENIZER)
    bare = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])
    for config, tokenizer, word in (
        (RobertaConfig(), TOKENIZER, "'pretraining'"),
        (BertConfig(), bare, "MASK"),
    ):
        with pytest.raises(InputError, match=word):
            NextSentence().check(config, tokenizer)
    with pytest.raises(InputError, match="short_share"):
        NextSentence(short_share=1.5)
