import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.baselines import Word2Vec, Word2VecSettings, read_word_corpus
from tfnlp.baselines.word2vec import HuffmanTree, Negatives, _ascend, character_ngrams, kept_shares

TEXTS = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog"]
RATE = 2**-6
SMALL = Word2VecSettings(dim=6, window=2, negatives=3, subsample=0, batch_words=7)


@pytest.fixture(scope="module")
def corpus():
    return read_word_corpus(TEXTS, min_count=1)


def windows(ids, widths, end, window):
    """Yield the middle word and those of its window, text by text, in a plain loop."""
    for i, word in enumerate(ids):
        if word == end:
            continue
        around = []
        for step in (-1, 1):
            for j in range(i + step, i + step * (widths[i] + 1), step):
                if not 0 <= j < len(ids) or ids[j] == end:
                    break
                around.append(ids[j])
        yield i, around


def plain_loss(model, ids, widths, targets, labels, weights):
    """Compute minus the objective of each paper, by vectors that a tape watches."""
    settings, loss = model.settings, 0.0
    last = model.inputs.shape[0] - 1
    vectors = [
        tf.reduce_mean(tf.stack([model.inputs[r] for r in rows if r != last]), 0)
        for rows in model.rows_of[:-1]
    ]
    for i, around in windows(ids, widths, model.corpus.end, settings.window):
        if not around:
            continue
        inputs = [vectors[j] for j in around]
        if settings.architecture == "cbow":
            inputs = [sum(inputs) / len(inputs)]
        for x in inputs:
            for target, label, weight in zip(targets[i], labels[i], weights[i], strict=True):
                sign = 2 * label - 1
                product = tf.reduce_sum(x * model.outputs[int(target)])
                loss -= weight * tf.math.log_sigmoid(sign * product)
    return loss


@pytest.mark.parametrize(
    "architecture, objective, max_ngram",
    [
        ("skip_gram", "negative_sampling", 3),
        ("skip_gram", "hierarchical_softmax", 0),
        ("cbow", "negative_sampling", 0),
        ("cbow", "hierarchical_softmax", 3),
    ],
)
def test_a_step_moves_along_the_gradient_of_the_objective(
    corpus, architecture, objective, max_ngram
):
    sizes = {"min_ngram": 2, "buckets": 50, "batch_words": len(corpus.ids)}
    kinds = {"architecture": architecture, "objective": objective, "max_ngram": max_ngram}
    settings = dataclasses.replace(SMALL, **sizes, **kinds)
    model = Word2Vec(corpus, settings)
    rng = np.random.default_rng(3)
    model.outputs.assign(rng.normal(size=model.outputs.shape).astype("float32"))
    ((batch, read),) = list(model.batches(corpus.ids, rng))
    around, _, widths, targets, labels, weights = batch
    ids = around[settings.window : -settings.window]
    assert read == 0
    np.testing.assert_array_equal(ids, corpus.ids)
    with tf.GradientTape() as tape:
        loss = plain_loss(model, ids, widths, targets, labels, weights)
    by_inputs, by_outputs = tape.gradient(loss, [model.inputs, model.outputs])
    by_inputs = tf.convert_to_tensor(by_inputs).numpy()
    inputs, outputs = model.inputs.numpy(), model.outputs.numpy()
    model._step(*batch, tf.constant(RATE))
    moved = (model.outputs.numpy() - outputs) / RATE
    np.testing.assert_allclose(moved, -tf.convert_to_tensor(by_outputs), atol=1e-4)
    # A mean's gradient goes whole to each n-gram, as in fastText's code: compare word by word.
    moved = (model.inputs.numpy() - inputs) / RATE
    if not max_ngram:
        np.testing.assert_allclose(moved, -by_inputs, atol=1e-4)
    else:
        for word in range(len(corpus.words)):  # rows of their own
            count = (model.rows_of[word] < len(inputs) - 1).sum()
            np.testing.assert_allclose(moved[word], -count * by_inputs[word], atol=1e-3)
    assert not moved[-1].any()


def test_vectors_of_words_in_like_windows_come_together():
    texts = [f"{a} {b}" for a in ("cat", "dog") for b in ("purrs", "eats")] * 200
    texts += [f"{a} {b}" for a in ("car", "bus") for b in ("drives", "stops")] * 200
    settings = Word2VecSettings(dim=8, epochs=20, subsample=0, batch_words=100, window=1)
    corpus = read_word_corpus(texts)
    vectors = Word2Vec(corpus, settings).train()
    assert vectors.nearest("cat", 1)[0][0] == "dog" and vectors.nearest("bus", 1)[0][0] == "car"
    again = Word2Vec(corpus, settings).train()
    np.testing.assert_array_equal(again.vectors, vectors.vectors)


@pytest.mark.parametrize("rate", [0.01, 10.0])
def test_a_row_moves_by_the_rate_or_by_the_bound_of_its_second_derivative(rate):
    rng = np.random.default_rng(0)
    rows, bounds = rng.integers(0, 3, (5, 2)), rng.random((5, 2)).astype("float32")
    gradients = rng.normal(size=(5, 2, 4)).astype("float32")
    table = tf.Variable(tf.zeros((3, 4)))
    _ascend(table, rows, gradients, bounds, rate)
    for row in range(3):
        step = min(rate, 1 / bounds[rows == row].sum())
        expected = step * gradients[rows == row].sum(0)
        np.testing.assert_allclose(table[row], expected, rtol=1e-5, atol=1e-6)


def test_a_huffman_tree_has_short_paths_for_common_words():
    counts = np.array([8, 4, 2, 1, 1])
    tree = HuffmanTree(counts)
    assert [len(path) for path in tree.paths] == [1, 2, 3, 4, 4]
    targets, labels, weights = tree.draw(np.array([0, 3]), None)
    assert targets.shape == (2, 4) and list(weights.sum(1)) == [1, 4]
    # The probabilities of all words sum to 1, whatever the vectors.
    margins = np.random.default_rng(0).normal(size=len(counts) - 1)
    targets, labels, weights = tree.draw(np.arange(5), None)
    right = 1 / (1 + np.exp(-np.where(labels == 1, 1, -1) * margins[targets]))
    assert np.where(weights == 1, right, 1).prod(1).sum() == pytest.approx(1)


def test_negatives_are_drawn_by_counts_to_the_power_of_three_quarters():
    counts = np.array([1000, 100, 10])
    middle = np.zeros(20_000, "int32")
    targets, labels, weights = Negatives(counts, 5).draw(middle, np.random.default_rng(0))
    shares = np.bincount(targets[:, 1:].ravel(), minlength=3) / targets[:, 1:].size
    np.testing.assert_allclose(shares, counts**0.75 / (counts**0.75).sum(), atol=0.01)
    assert (labels[:, 0] == 1).all() and not labels[:, 1:].any()
    np.testing.assert_array_equal(weights[:, 1:] == 0, targets[:, 1:] == 0)
    due = [np.sqrt(1 / 90) + 1 / 90, np.sqrt(0.1) + 0.1]
    np.testing.assert_allclose(kept_shares(np.array([900, 100]), 0.01), due)


def test_ngrams_of_a_word_with_its_edges():
    assert character_ngrams("where", 3, 3) == ["<wh", "whe", "her", "ere", "re>"]
    assert "<where>" not in character_ngrams("where", 3, 9)


def test_widths_are_drawn_evenly_up_to_the_window(corpus):
    model = Word2Vec(corpus, dataclasses.replace(SMALL, window=5, batch_words=10_000))
    ((batch, _),) = model.batches(np.zeros(10_000, "int32"), np.random.default_rng(0))
    counts = np.bincount(batch[2])
    assert len(counts) == 6 and not counts[0]
    assert abs(counts[1:] - 2000).max() < 4 * np.sqrt(10_000 * 0.2 * 0.8)
