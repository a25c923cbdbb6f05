"""Nearest words, by the vectors of a file or of a model's tokens."""

import functools

import numpy as np
from keras import ops

from tfnlp.baselines.word_vectors import WordVectors
from tfnlp.utils.errors import InputError


class WordNeighbours:
    """Nearest words by cosine similarity.

    Args:
        vectors: `tfnlp.baselines.WordVectors`.
        vector_of: function that returns the vector (D,) of a word without one there, or None.
    """

    def __init__(self, vectors, vector_of=None):
        self.vectors = vectors
        self._vector_of = vector_of
        self._nearest = functools.cache(self._find)

    @classmethod
    def of_model(cls, model, tokenizer):
        """Take vectors from a model's token table; a word of several tokens has their mean."""
        table = ops.convert_to_numpy(model.get_layer("embeddings").token_table)
        words = whole_words(tokenizer)

        def vector_of(word):
            (encoding,) = tokenizer.encode([word], offsets=True)
            pieces = pieces_within(encoding, 0, len(word))
            return table[[encoding.token_ids[i] for i in pieces]].mean(0) if pieces else None

        return cls(WordVectors(words.values(), table[list(words)]), vector_of)

    @classmethod
    def from_file(cls, path):
        """Read the vectors of words of letters from a file, as `WordVectors.load` does.

        Raises:
            InputError: as it does, and if no word is of letters.
        """
        vectors = WordVectors.load(path)
        rows = [row for row, word in enumerate(vectors.words) if word.isalpha()]
        if not rows:
            raise InputError(f"{path} holds no vector of a word of letters.")
        return cls(WordVectors([vectors.words[row] for row in rows], vectors.vectors[rows]))

    def nearest(self, word, count):
        """Return the `count` nearest words, without the word itself; none if it has no vector."""
        return self._nearest(word, count)

    def _find(self, word, count):
        known = next((w for w in (word, word.lower()) if w in self.vectors), None)
        vector = (
            self._vector_of and self._vector_of(word) if known is None else self.vectors[known]
        )
        if vector is None:
            return []
        order = np.argsort(-(self.vectors.unit @ vector), kind="stable")[: count + 1]
        words = [self.vectors.words[i] for i in order]
        return [other for other in words if other.lower() != word.lower()][:count]


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
