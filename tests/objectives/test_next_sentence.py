"""Next sentences: pairs, labels, and lengths that do not tell the label."""

import collections

import numpy as np
import pytest
from tfnlp.objectives.text_pairs import truncate_pair

from tfnlp.objectives import Corpus, NextSentence, SentenceOrder, SpecialTokenTemplate
from tfnlp.objectives.passages import Passages

TEMPLATE = SpecialTokenTemplate(
    (((2, 0),), ((3, 0),)), 0, (((2, 0),), ((3, 0),), ((3, 1),)), (0, 1)
)


def numbered(*documents):
    """Documents of sentences of these sizes, whose tokens are numbered through the corpus."""
    ids = iter(range(10, 10_000))
    return Corpus.from_documents(
        [[[next(ids) for _ in range(n)] for n in sizes] for sizes in documents]
    )


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


@pytest.mark.parametrize("most_sentences", [7, 60], ids=["below the room", "above the room"])
@pytest.mark.parametrize("objective", [NextSentence(), SentenceOrder()])
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
