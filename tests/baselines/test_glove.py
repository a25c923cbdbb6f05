import numpy as np
import pytest
import tensorflow as tf

from tfnlp.baselines import Glove, GloveSettings, count_pairs, glove, read_word_corpus

SENTENCES = ["I like deep learning .", "I like NLP .", "I enjoy flying ."]


def as_matrix(corpus, keys, counts):
    matrix = np.zeros((len(corpus.words),) * 2)
    matrix.flat[keys] = counts
    return matrix


def test_the_counts_of_three_sentences_with_window_1():
    corpus = read_word_corpus(SENTENCES, "spaces", min_count=1)
    matrix = as_matrix(corpus, *count_pairs(corpus, 1))
    expected = np.zeros_like(matrix)
    pairs = [("I", "like", 2), ("I", "enjoy", 1), ("like", "deep", 1), ("like", "NLP", 1)]
    pairs += [("deep", "learning", 1), ("learning", ".", 1), ("NLP", ".", 1)]
    for a, b, count in [*pairs, ("enjoy", "flying", 1), ("flying", ".", 1)]:
        i, j = corpus.words.index(a), corpus.words.index(b)
        expected[i, j] = expected[j, i] = count
    np.testing.assert_array_equal(matrix, expected)


def test_parts_on_disk_sum_to_the_whole(monkeypatch):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list("abcdefgh"), n)) for n in rng.integers(0, 20, 40)]
    corpus = read_word_corpus(texts, min_count=1)
    expected = np.zeros((len(corpus.words),) * 2)
    for text in texts:
        ids = [corpus.words.index(word) for word in text.split()]
        for i, a in enumerate(ids):
            for j in range(max(0, i - 3), min(len(ids), i + 4)):
                if i != j:
                    expected[a, ids[j]] += 1 / abs(i - j)
    np.testing.assert_allclose(as_matrix(corpus, *count_pairs(corpus, 3)), expected, rtol=1e-5)
    monkeypatch.setattr(glove, "BLOCK", 37)
    keys, counts = count_pairs(corpus, 3)
    np.testing.assert_allclose(as_matrix(corpus, keys, counts), expected, rtol=1e-5)
    assert (np.diff(keys) > 0).all()


def test_a_step_is_one_of_adagrad_on_the_paper_s_loss():
    settings = GloveSettings(dim=4, x_max=10.0)
    model = Glove(list("abcde"), ([], []), settings)
    words, contexts = np.array([0, 1, 3], "int32"), np.array([1, 2, 0], "int32")
    counts = np.array([0.5, 4.0, 25.0], "float32")
    before = model.vectors.numpy()
    with tf.GradientTape() as tape:
        loss = 0.0
        for i, j, x in zip(words, contexts, counts, strict=True):
            w, c = model.vectors[i], model.vectors[5 + j]
            error = tf.reduce_sum(w[:-1] * c[:-1]) + w[-1] + c[-1] - np.log(x)
            loss += min((x / 10) ** 0.75, 1) * error**2 / 2
    gradient = tf.convert_to_tensor(tape.gradient(loss, model.vectors)).numpy()
    mean = model._step(words, contexts, counts)
    assert float(mean) == pytest.approx(float(loss) / 3, rel=1e-5)
    np.testing.assert_allclose(model.vectors.numpy() - before, -0.05 * gradient, atol=1e-6)
    np.testing.assert_allclose(model.squares.numpy(), 1 + gradient**2, atol=1e-6)


def test_products_come_near_the_logarithms_of_counts():
    corpus = read_word_corpus(["a b a c", "b c d a", "d a b b"] * 5, min_count=1)
    keys, counts = count_pairs(corpus, 3)
    settings = GloveSettings(dim=8, epochs=300, learning_rate=0.1, batch_pairs=5, x_max=1.0)
    model = Glove(corpus.words, (keys, counts), settings)
    vectors = model.train()
    first, second = np.split(model.vectors.numpy(), 2)
    i, j = np.divmod(keys, len(corpus.words))
    products = (first[i, :-1] * second[j, :-1]).sum(1) + first[i, -1] + second[j, -1]
    np.testing.assert_allclose(products, np.log(counts), atol=0.1)
    np.testing.assert_array_equal(vectors.vectors, first[:, :-1] + second[:, :-1])
