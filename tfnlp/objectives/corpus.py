"""Unlabelled text as token ids: documents of sentences."""

import dataclasses
import hashlib
import itertools

import numpy as np

from tfnlp.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class Corpus:
    """Documents of sentences, tokenised, without special tokens, in memory.

    Other corpora, such as one on disk, have the same length, attributes and methods.

    Args:
        token_ids: (tokens,) int32, those of all documents, one after another.
        sentence_ends: (sentences,) int64, where in `token_ids` each sentence ends.
        document_ends: (documents,) int64, how many sentences there are up to each one's end.

    Raises:
        InputError: for a corpus without a token.
    """

    token_ids: np.ndarray
    sentence_ends: np.ndarray
    document_ends: np.ndarray

    def __post_init__(self):
        if not len(self.token_ids):
            raise InputError("The corpus holds no token; give one with text.")

    @classmethod
    def of(cls, documents):
        """The corpus of documents, each a list of sentences, each a list of ids."""
        sentences = [np.asarray(ids, "int32") for document in documents for ids in document]
        return cls(
            np.concatenate([np.zeros(0, "int32"), *sentences]),
            np.cumsum([len(ids) for ids in sentences], dtype="int64"),
            np.cumsum([len(document) for document in documents], dtype="int64"),
        )

    def __len__(self):
        """The number of documents."""
        return len(self.document_ends)

    @property
    def sentence_counts(self):
        """(documents,) int64, the sentences of each."""
        return np.diff(self.document_ends, prepend=0)

    @property
    def token_counts(self):
        """(documents,) int64, the tokens of each."""
        ends = np.concatenate([[0], self.sentence_ends])[self.document_ends]
        return np.diff(ends, prepend=0)

    def document(self, index):
        """A document's ids, (tokens,) int32."""
        start, end = self._sentence_range(index)
        return self.token_ids[self._token_start(start) : self._token_start(end)]

    def part(self, index, start, stop):
        """A document's ids from `start` to before `stop`, (tokens,) int32: no more than it has.

        Args:
            index: of the document.
            start, stop: 0 or more.
        """
        return self.document(index)[start:stop]

    def sentences(self, index):
        """A document's sentences, a list of (tokens,) int32."""
        start, end = self._sentence_range(index)
        bounds = [self._token_start(i) for i in range(start, end + 1)]
        return [self.token_ids[a:b] for a, b in itertools.pairwise(bounds)]

    def sentence_lengths(self, index):
        """The tokens of each of a document's sentences, (sentences,) int64."""
        start, end = self._sentence_range(index)
        return np.diff(self.sentence_ends[start:end], prepend=self._token_start(start))

    def fingerprint(self):
        """A SHA-256 of all ids and borders."""
        digest = hashlib.sha256()
        for flat in (self.token_ids, self.sentence_ends, self.document_ends):
            digest.update(f"{flat.dtype}{flat.shape}".encode())
            digest.update(np.ascontiguousarray(flat))
        return digest.hexdigest()

    def _sentence_range(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"document {index} of {len(self)}")
        return int(self.document_ends[index - 1]) if index else 0, int(self.document_ends[index])

    def _token_start(self, sentence):
        return int(self.sentence_ends[sentence - 1]) if sentence else 0
