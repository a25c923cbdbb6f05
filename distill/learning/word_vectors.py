"""Word vectors, of a file or of a model's tokens, and their nearest neighbours."""

import functools

import numpy as np
from keras import ops

from tfnlp.text.lines import read_lines
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar


class WordVectors:
    """Word vectors, with nearest neighbours by cosine similarity.

    Args:
        words: a list of strings.
        vectors: (words, D).
        vector_of: function that returns the vector (D,) of a word that is not in `words`, or None.
    """

    def __init__(self, words, vectors, vector_of=None):
        self.words = list(words)
        self.vectors = _normalised(np.asarray(vectors, "float32"))
        self._rows = {word: row for row, word in reversed([*enumerate(self.words)])}
        self._vector_of = vector_of
        self._nearest = functools.cache(self._find)

    @classmethod
    def of_model(cls, model, tokenizer):
        """Build vectors from a model's token table; a word of several tokens has their mean."""
        table = ops.convert_to_numpy(model.get_layer("embeddings").token_table)
        words = whole_words(tokenizer)

        def vector_of(word):
            (encoding,) = tokenizer.encode([word], offsets=True)
            pieces = pieces_within(encoding, 0, len(word))
            return table[[encoding.token_ids[i] for i in pieces]].mean(0) if pieces else None

        return cls(words.values(), table[list(words)], vector_of)

    @classmethod
    def from_file(cls, path):
        """Read GloVe's or word2vec's text format, keeping words of letters.

        Args:
            path: file with a word and its numbers on each line, separated by spaces; word2vec's
                first line has the two counts.

        Raises:
            InputError: if the file is missing or broken, naming the line.
        """
        words, rows, width = [], [], None
        for number, line in progress_bar(read_lines(path), desc="vectors", unit="word"):
            fields = line.rstrip().split(" ")
            if number == 1 and len(fields) == 2 and all(map(str.isdecimal, fields)):
                continue  # word2vec's counts
            width = width or len(fields) - 1
            # A few of GloVe's words contain a space.
            word, numbers = " ".join(fields[:-width]), fields[-width:]
            try:
                row = np.array(numbers, "float32")
            except ValueError:
                row = None
            if row is None or not word or width < 2 or not np.isfinite(row).all():
                raise InputError(
                    f"{path}, line {number}: expected a word and {max(width, 2)} numbers with a "
                    "space between, as in GloVe's and word2vec's text files."
                )
            if word.isalpha():
                words.append(word)
                rows.append(row)
        if not words:
            raise InputError(f"{path} holds no vector of a word of letters.")
        return cls(words, np.stack(rows))

    def nearest(self, word, count):
        """Return the `count` nearest words, without the word itself; none if it has no vector."""
        return self._nearest(word, count)

    def _find(self, word, count):
        row = self._rows.get(word, self._rows.get(word.lower()))
        vector = self._vector_of and self._vector_of(word) if row is None else self.vectors[row]
        if vector is None:
            return []
        vector = _normalised(vector)
        order = np.argsort(-(self.vectors @ vector), kind="stable")[: count + 1]
        words = [self.words[i] for i in order if self.words[i].lower() != word.lower()]
        return words[:count]


def whole_words(tokenizer):
    """Return the words of letters that are a single token, {id: word}."""
    words = {i: tokenizer.decode([i]).strip() for i in range(tokenizer.vocabulary_size)}
    words = {i: word for i, word in words.items() if word.isalpha()}
    special = set(tokenizer.encode([""])[0].token_ids)
    # Leave out word continuations, and tokens that their own text is not encoded as.
    encodings = tokenizer.encode_words([[word] for word in words.values()], max_length=512)
    return {
        i: word
        for (i, word), encoding in zip(words.items(), encodings, strict=True)
        if [token for token in encoding.token_ids if token not in special] == [i]
    }


def pieces_within(encoding, start, end):
    """Return the indices of the tokens within a word; none if a token reaches beyond it."""
    pieces = []
    for i, (first, last) in enumerate(encoding.offsets):
        if first < end and last > start and last > first:
            if first < start - 1 or last > end:
                return []
            pieces.append(i)
    return pieces


def _normalised(vectors):
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)
