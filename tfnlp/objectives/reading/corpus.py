"""Unlabelled text as token ids, in documents of sentences."""

import dataclasses
import hashlib
import itertools

import numpy as np

from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class Corpus:
    """Tokenised documents of sentences in memory, without special tokens.

    Other corpora, such as one on disk, have the same length, attributes and methods.

    Args:
        token_ids: (tokens,) int32, all documents concatenated.
        sentence_ends: (sentences,) int64, the end of each sentence in `token_ids`.
        document_ends: (documents,) int64, the number of sentences up to the end of each document.

    Raises:
        InputError: if the corpus has no token.
    """

    token_ids: np.ndarray
    sentence_ends: np.ndarray
    document_ends: np.ndarray

    def __post_init__(self):
        if not len(self.token_ids):
            raise InputError("The corpus holds no token; give files with text.")

    @classmethod
    def from_documents(cls, documents):
        """Build a corpus from documents, each a list of sentences, each a list of ids."""
        sentences = [np.asarray(ids, "int32") for document in documents for ids in document]
        return cls(
            np.concatenate([np.zeros(0, "int32"), *sentences]),
            np.cumsum([len(ids) for ids in sentences], dtype="int64"),
            np.cumsum([len(document) for document in documents], dtype="int64"),
        )

    def __len__(self):
        """Return the number of documents."""
        return len(self.document_ends)

    @property
    def sentence_counts(self):
        """The number of sentences of each document, (documents,) int64."""
        return np.diff(self.document_ends, prepend=0)

    @property
    def token_counts(self):
        """The number of tokens of each document, (documents,) int64."""
        ends = np.concatenate([[0], self.sentence_ends])[self.document_ends]
        return np.diff(ends, prepend=0)

    def document(self, index):
        """Return the ids of a document, (tokens,) int32."""
        start, end = self._sentence_range(index)
        return self.token_ids[self._token_start(start) : self._token_start(end)]

    def part(self, index, start, stop):
        """Return the ids of a document from `start` to before `stop`, (tokens,) int32.

        The range is cut to the document.
        """
        return self.document(index)[start:stop]

    def sentences(self, index):
        """Return the sentences of a document, a list of (tokens,) int32."""
        start, end = self._sentence_range(index)
        bounds = [self._token_start(i) for i in range(start, end + 1)]
        return [self.token_ids[a:b] for a, b in itertools.pairwise(bounds)]

    def sentence_lengths(self, index):
        """Return the number of tokens of each sentence of a document, (sentences,) int64."""
        start, end = self._sentence_range(index)
        return np.diff(self.sentence_ends[start:end], prepend=self._token_start(start))

    def fingerprint(self):
        """Return a SHA-256 of all ids and boundaries."""
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
