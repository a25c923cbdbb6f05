"""Word vectors from co-occurrence counts: GloVe."""

import itertools
import tempfile

import numpy as np
import tensorflow as tf

from tfnlp.baselines.word_corpus import BLOCK
from tfnlp.baselines.word_vector_model import WordVectorModel
from tfnlp.baselines.word_vectors import WordVectors
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar


def count_pairs(corpus, window):
    """Count co-occurrences of words, X: a pair at a distance of d words counts 1 / d.

    Each part of the corpus is counted by itself and kept on disk; memory holds the distinct pairs.

    Args:
        corpus: a `WordCorpus`.
        window: the largest distance; pairs do not span texts.

    Returns:
        Keys and counts, (pairs,) each, sorted by key; the key of words i and j is
        i * len(words) + j. Both orders of a pair are counted.

    Raises:
        InputError: if no two words are within the window.
    """
    parts = []
    for start in progress_bar(range(0, len(corpus.ids), BLOCK), desc="pairs", unit="part"):
        ids = np.asarray(corpus.ids[start : start + BLOCK + window])
        parts.append(_on_disk(*_count_part(ids, min(BLOCK, len(ids)), corpus.end, window)))
    keys, counts = _merge(parts, len(corpus.words) ** 2)
    if not len(keys):
        raise InputError(
            f"No two words of a text are within window={window} of each other; give whole "
            "sentences, or a lower min_count."
        )
    return keys, counts


def _count_part(ids, length, end, window):
    """Return the summed keys and counts of pairs that begin in the first `length` ids."""
    text, keys, counts = np.cumsum(ids == end), [], []
    for distance in range(1, window + 1):
        first, second = ids[:-distance][:length], ids[distance:][:length]
        same = (text[:-distance] == text[distance:])[:length]
        same &= (first != end) & (second != end)
        first, second = first[same].astype("int64"), second[same].astype("int64")
        keys += [first * end + second, second * end + first]
        counts.append(np.full(2 * len(first), 1 / distance, "float32"))
    return _summed(np.concatenate(keys), np.concatenate(counts))


def _summed(keys, counts):
    """Return the distinct keys, sorted, and the sum of the counts of each."""
    keys, places = np.unique(keys, return_inverse=True)
    return keys, np.bincount(places, counts, len(keys)).astype("float32")


def _on_disk(*arrays):
    """Return arrays as maps of temporary files."""
    maps = []
    for values in arrays:
        file = tempfile.TemporaryFile()  # noqa: SIM115
        values.tofile(file)
        file.flush()
        maps.append(np.memmap(file, values.dtype, "r") if len(values) else values)
    return maps


def _merge(parts, limit):
    """Return the summed keys and counts of sorted parts, a range of keys at a time."""
    size = max((len(keys) for keys, _ in parts), default=0)
    ranges = max(1, -(-sum(len(keys) for keys, _ in parts) // max(size, 1)))
    # Common words have low numbers: ranges by the keys of the largest part, not by their values.
    largest = max((keys for keys, _ in parts), key=len, default=np.empty(0))
    edges = [0, *(largest[size * i // ranges] for i in range(1, ranges)), limit]
    merged = []
    for low, high in itertools.pairwise(edges):
        slices = [slice(*np.searchsorted(keys, [low, high])) for keys, _ in parts]
        taken = [
            (keys[part], counts[part]) for (keys, counts), part in zip(parts, slices, strict=True)
        ]
        merged.append(_on_disk(*_summed(*map(np.concatenate, zip(*taken, strict=True)))))
    return (np.concatenate(arrays) for arrays in zip(*merged, strict=True))


class Glove(WordVectorModel):
    """Vectors and biases of words and of contexts, and the step that trains them.

    Minimises `sum f(X_ij) (w_i . c_j + b_i + d_j - ln X_ij)^2 / 2` over the pairs that occur,
    where f(x) = min((x / x_max) ** alpha, 1) (Pennington et al. 2014, eq. 8 and 9), by AdaGrad
    whose sums of squares begin at 1, as in the authors' code.

    Args:
        words: the vocabulary.
        pairs: keys and counts, as `count_pairs` returns them.
        settings: `GloveSettings`.

    Attributes:
        vectors: (2 words, D + 1), those of words, then of contexts; the last column is biases.
        squares: the sums of their squared gradients.
    """

    unit = "pair"

    def __init__(self, words, pairs, settings):
        self.words, self.pairs, self.settings = words, pairs, settings
        self.size, self._epoch = len(pairs[0]), None
        rng = np.random.default_rng(settings.seed)
        shape = 2 * len(words), settings.dim + 1
        self.vectors = tf.Variable((rng.random(shape, "float32") - 0.5) / shape[1])
        self.squares = tf.Variable(tf.ones(shape))
        self.variables = {"vectors": self.vectors, "squares": self.squares}
        integers, floats = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.float32)
        self._step = tf.function(self.step, input_signature=[integers, integers, floats])

    def train_part(self, epoch, part):
        """Train on a slice of the pairs, in the order of the epoch."""
        keys, counts = self.pairs
        if epoch != self._epoch:
            rng = np.random.default_rng((self.settings.seed, epoch))
            self._epoch, self._order = epoch, rng.permutation(self.size)
        order = self._order[part]
        for start in range(0, len(order), self.settings.batch_pairs):
            batch = order[start : start + self.settings.batch_pairs]
            words, contexts = np.divmod(keys[batch], len(self.words))
            self._step(words.astype("int32"), contexts.astype("int32"), counts[batch])

    def word_vectors(self):
        """Return the sums w_i + c_i, as `WordVectors`."""
        return WordVectors(self.words, sum(np.split(self.vectors.numpy()[:, :-1], 2)))

    def step(self, words, contexts, counts):
        """Move the vectors along the gradient of a batch of pairs.

        Args:
            words, contexts: (P,) ids.
            counts: (P,), X.

        Returns:
            The mean loss of the batch.
        """
        rows = tf.stack([words, contexts + len(self.words)], 1)  # (P, 2)
        pairs = tf.gather(self.vectors, rows)  # (P, 2, D + 1)
        w, c = pairs[:, 0, :-1], pairs[:, 1, :-1]
        products = tf.reduce_sum(w * c, 1) + pairs[:, 0, -1] + pairs[:, 1, -1]
        errors = products - tf.math.log(counts)  # w_i . c_j + b_i + d_j - ln X_ij
        weights = tf.minimum((counts / self.settings.x_max) ** self.settings.alpha, 1)
        by_product = (weights * errors)[:, None]
        ones = tf.ones_like(by_product)
        by_word = by_product * tf.concat([c, ones], 1)
        by_context = by_product * tf.concat([w, ones], 1)
        gradient = tf.stack([by_word, by_context], 1)  # (P, 2, D + 1)
        rates = self.settings.learning_rate * tf.math.rsqrt(tf.gather(self.squares, rows))
        self.vectors.scatter_sub(tf.IndexedSlices(rates * gradient, rows))
        self.squares.scatter_add(tf.IndexedSlices(gradient**2, rows))
        return tf.reduce_mean(weights * errors**2) / 2
