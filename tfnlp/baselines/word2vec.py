"""Word vectors from windows: word2vec and fastText."""

import heapq
import zlib

import numpy as np
import tensorflow as tf

from tfnlp.baselines.word_vector_model import WordVectorModel
from tfnlp.baselines.word_vectors import WordVectors
from tfnlp.utils.errors import InputError


class Word2Vec(WordVectorModel):
    """Input and output vectors of words, and the step that trains them.

    With x_j the input vectors of a window and y_o the output vectors, negative sampling maximises
    `log s(x_j . y_c) + sum_k log s(-x_j . y_k)` for the middle word c and words k drawn by their
    counts to the power of 3/4 (Mikolov et al. 2013b, eq. 4), where s is the logistic function.
    Hierarchical softmax maximises `sum_n log s(t_n x_j . y_n)` over the inner nodes n on c's path
    in a Huffman tree, where t_n is 1 or -1 by the turn (2013b, eq. 3). CBOW has the mean of the
    x_j in place of each. Drawn words are shared by a window (Ji et al. 2016).

    Args:
        corpus: a `WordCorpus`.
        settings: `Word2VecSettings`.

    Attributes:
        inputs: (rows, D), of words, n-grams, and of none in the last row, which is zero.
        outputs: (words, D).
        rows_of: (words + 1, n), the rows of `inputs` that each word's vector is the mean of, and
            those of the end of a text, filled up with the last row.

    Raises:
        InputError: if no text has two words of the vocabulary.
    """

    unit = "word"

    def __init__(self, corpus, settings):
        ids, end = corpus.ids, corpus.end
        if not ((ids[1:] != end) & (ids[:-1] != end)).any():
            raise InputError(
                "No text of the corpus has two words beside each other that occur often enough; "
                "give whole sentences, or a lower min_count."
            )
        self.corpus, self.settings, self.size = corpus, settings, len(ids)
        self.rows_of, rows = ngram_rows(corpus.words, settings)
        rng = np.random.default_rng(settings.seed)
        inputs = (rng.random((rows, settings.dim), "float32") - 0.5) / settings.dim
        inputs[-1] = 0
        self.inputs = tf.Variable(inputs)
        self.outputs = tf.Variable(tf.zeros((len(corpus.words), settings.dim)))
        self.variables = {"inputs": self.inputs, "outputs": self.outputs}
        # The end of a text is always kept.
        self._kept_shares = np.append(kept_shares(corpus.counts, settings.subsample), 1)
        if settings.objective == "hierarchical_softmax":
            self._targets = HuffmanTree(corpus.counts)
        else:
            self._targets = Negatives(corpus.counts, settings.negatives)
        integers, floats = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, None], tf.float32)
        pairs = tf.TensorSpec([None, None], tf.int32)
        signature = [integers] * 3 + [pairs, floats, floats, tf.TensorSpec([], tf.float32)]
        self._step = tf.function(self.step, input_signature=signature)

    def train_part(self, epoch, part):
        """Train on the words of a slice of the corpus."""
        settings = self.settings
        rng = np.random.default_rng((settings.seed, epoch, part.start))
        for batch, read in self.batches(np.asarray(self.corpus.ids[part]), rng):
            done = (epoch + (part.start + read) / self.size) / settings.epochs
            rate = settings.learning_rate * max(1 - done, 1e-4)
            self._step(*batch, tf.constant(rate, tf.float32))

    def batches(self, ids, rng):
        """Yield the arguments of `step`, and the number of ids that were read before.

        Args:
            ids: (n,) ids of a part of the corpus.
            rng: a `numpy.random.Generator`.
        """
        window, end = self.settings.window, self.corpus.end
        kept = np.flatnonzero(rng.random(len(ids), "float32") < self._kept_shares[ids])
        gap = np.full(window, end, "int32")
        texts = np.concatenate([gap, ids[kept], gap])
        for start in range(0, len(kept), self.settings.batch_words):
            around = texts[start : start + self.settings.batch_words + 2 * window]
            middle = around[window:-window]
            widths = rng.integers(1, window + 1, len(middle), "int32")
            targets = self._targets.draw(np.minimum(middle, end - 1), rng)
            text = np.cumsum(around == end, dtype="int32")
            yield (around, text, widths, *targets), kept[start]

    def step(self, around, text, widths, targets, labels, weights, rate):
        """Move the vectors along the gradient of a batch of middle words, summed over them.

        Args:
            around: (L + 2 window,) ids, the middle words with those before and after.
            text: (L + 2 window,), the number of each one's text.
            widths: (L,), how far each middle word's window goes.
            targets: (L, P), rows of `outputs`.
            labels: (L, P), 1 where a target is right.
            weights: (L, P), 0 where there is no target.
            rate: the learning rate.
        """
        window, end, count = self.settings.window, self.corpus.end, tf.shape(widths)[0]
        offsets = [*range(-window, 0), *range(1, window + 1)]
        rows = tf.gather(self.rows_of, around)  # (L + 2 window, n)
        filled = tf.cast(rows < self.inputs.shape[0] - 1, tf.float32)[..., None]
        vectors = tf.reduce_sum(tf.gather(self.inputs, rows), 1)  # (L + 2 window, D)
        vectors /= tf.maximum(tf.reduce_sum(filled, 1), 1)

        def shifted(x):
            return tf.stack([x[window + o : window + o + count] for o in offsets], 1)

        middle = slice(window, window + count)
        seen = (tf.abs(tf.constant(offsets)) <= widths[:, None]) & (shifted(around) != end)
        seen &= (around[middle] != end)[:, None] & (shifted(text) == text[middle, None])
        seen = tf.cast(seen, tf.float32)  # (L, 2 window)
        x = shifted(vectors) * seen[..., None]  # (L, 2 window, D)
        shares = seen[..., None]
        if self.settings.architecture == "cbow":
            shares /= tf.maximum(tf.reduce_sum(seen, 1), 1)[:, None, None]
            x = tf.reduce_sum(x * shares, 1, keepdims=True)  # (L, 1, D)
        y = tf.gather(self.outputs, targets)  # (L, P, D)
        # The gradient of log s(x . y), or of log s(-x . y) where the label is 0, by x . y.
        errors = labels[:, None] - tf.sigmoid(tf.matmul(x, y, transpose_b=True))
        errors *= weights[:, None]  # (L, 2 window or 1, P)
        by_x = tf.matmul(errors, y) * shares  # (L, 2 window, D)
        by_y = tf.matmul(errors, x, transpose_a=True)  # (L, P, D)
        # A bound of each row's second derivative: s' is at most 1/4.
        bound_y = weights * tf.reduce_sum(x**2, [1, 2])[:, None] / 4  # (L, P)
        bound_x = shares[..., 0] * tf.reduce_sum(weights[..., None] * y**2, [1, 2])[:, None] / 4

        def by_position(parts):
            """Return the sum of (L, 2 window, n) parts for each of the positions around."""
            pads = [[[window + o, window - o], [0, 0]] for o in offsets]
            return tf.add_n([tf.pad(parts[:, i], pad) for i, pad in enumerate(pads)])

        # Each row takes the whole gradient of the mean, as in fastText's code.
        by_row = by_position(by_x)[:, None] * filled  # (L + 2 window, n, D)
        bound_row = by_position(bound_x[..., None]) * filled[..., 0]
        _ascend(self.inputs, rows, by_row, bound_row, rate)
        _ascend(self.outputs, targets, by_y, bound_y, rate)

    def word_vectors(self):
        """Return the input vectors of the words, as `WordVectors`."""
        rows = self.rows_of[:-1]
        filled = (rows < self.inputs.shape[0] - 1).sum(1, keepdims=True)
        return WordVectors(self.corpus.words, self.inputs.numpy()[rows].sum(1) / filled)


def _ascend(table, rows, gradients, bounds, rate):
    """Add the summed gradients of rows to a table, times the rate, or less where they are many.

    Updates that follow each other would shrink as they go; their sum overshoots where the rate
    times the second derivative passes 1. Such a row moves by the gradient over that derivative's
    bound.

    Args:
        table: a variable (n, D).
        rows: (A, B), some of them more than once.
        gradients: (A, B, D).
        bounds: (A, B), of the second derivative in any direction; they add up too.
        rate: the learning rate.
    """
    total = tf.math.unsorted_segment_sum(bounds, rows, table.shape[0])
    steps = rate / tf.maximum(rate * tf.gather(total, rows), 1)
    table.scatter_add(tf.IndexedSlices(gradients * steps[..., None], rows))


def ngram_rows(words, settings):
    """Return the rows that each word's vector is the mean of, and the number of all rows.

    A word has a row of its own. With `max_ngram` it has those of its character n-grams too, the
    edges marked by < and > (Bojanowski et al. 2017, section 3.2).

    Returns:
        (words + 1, n) int32, and the number of rows; the last is for filling up.
    """
    bags = [[i] for i in range(len(words))]
    if not settings.max_ngram:
        return np.array([*bags, [len(words)]], "int32"), len(words) + 1
    last = len(words) + settings.buckets
    for i, word in enumerate(words):
        for ngram in character_ngrams(word, settings.min_ngram, settings.max_ngram):
            bags[i].append(len(words) + zlib.crc32(ngram.encode()) % settings.buckets)
    rows = np.full((len(words) + 1, max(map(len, bags))), last, "int32")
    for i, row in enumerate(bags):
        rows[i, : len(row)] = row
    return rows, last + 1


def character_ngrams(word, shortest, longest):
    """Return the n-grams of a word between < and >, without the whole."""
    marked = f"<{word}>"
    return [
        marked[start : start + n]
        for n in range(shortest, longest + 1)
        for start in range(len(marked) - n + 1)
        if n < len(marked)
    ]


def kept_shares(counts, subsample):
    """Return the probability to keep each word, (words,).

    For a share f of the corpus and the threshold t it is `sqrt(t / f) + t / f` at most 1, as in
    word2vec's code; Mikolov et al. 2013b, eq. 5, has the first term alone.
    """
    if not subsample:
        return np.ones(len(counts))
    ratio = subsample * counts.sum() / counts
    return np.minimum(np.sqrt(ratio) + ratio, 1)


class Negatives:
    """Targets of negative sampling: the middle word, and words drawn by counts ** 0.75."""

    def __init__(self, counts, number):
        self.number = number
        self._cumulated = np.cumsum(np.asarray(counts, float) ** 0.75)
        self._cumulated /= self._cumulated[-1]

    def draw(self, middle, rng):
        """Return targets, labels and weights, (L, 1 + number), for middle words (L,)."""
        drawn = rng.random((len(middle), self.number))
        drawn = np.searchsorted(self._cumulated, drawn).astype("int32")
        targets = np.concatenate([middle[:, None], drawn], 1)
        labels = np.zeros(targets.shape, "float32")
        labels[:, 0] = 1
        weights = np.ones(targets.shape, "float32")
        weights[:, 1:] = drawn != middle[:, None]
        return targets, labels, weights


class HuffmanTree:
    """Targets of hierarchical softmax: inner nodes on the path to the middle word.

    Frequent words have short paths (Huffman 1952). The inner nodes are numbered from 0.

    Attributes:
        paths: for each word a list of (inner node, turn), from the root, where turn is 0 or 1.
    """

    def __init__(self, counts):
        size = len(counts)
        heap = [(int(count), i) for i, count in enumerate(counts)]
        heapq.heapify(heap)
        parents = {}
        for node in range(size, 2 * size - 1):
            (first, left), (second, right) = heapq.heappop(heap), heapq.heappop(heap)
            parents[left], parents[right] = (node - size, 0), (node - size, 1)
            heapq.heappush(heap, (first + second, node))
        self.paths = []
        for word in range(size):
            path, node = [], word
            while node in parents:
                path.append(parents[node])
                node = parents[node][0] + size
            self.paths.append(path[::-1])
        depth = max(1, *map(len, self.paths))
        self._targets = np.zeros((size, depth), "int32")
        self._labels, self._weights = np.zeros((2, size, depth), "float32")
        for word, path in enumerate(self.paths):
            if path:
                nodes, turns = zip(*path, strict=True)
                self._targets[word, : len(path)] = nodes
                self._labels[word, : len(path)] = 1 - np.array(turns)
                self._weights[word, : len(path)] = 1

    def draw(self, middle, rng):
        """Return targets, labels and weights, (L, depth), for middle words (L,)."""
        return self._targets[middle], self._labels[middle], self._weights[middle]
