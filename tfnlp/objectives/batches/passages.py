"""Passages of documents, to be split into pairs of texts.

Devlin et al. 2019, 'BERT', appendix A.2, as in BERT's own code (create_pretraining_data.py).
"""

import array
import dataclasses
import functools

import numpy as np
from absl import logging

from tfnlp.objectives.batches.segments import index_fingerprint
from tfnlp.utils.errors import InputError

# The number of texts to draw; the nearest in length is taken.
TRIES = 16


@dataclasses.dataclass(frozen=True, eq=False)
class Passages:
    """Passages of two or more sentences of a document, to be split into pairs.

    They take 8 bytes a sentence, 8 a document and 20 a passage. They can replace the encodings of
    `tfnlp.text.LengthBatches`.

    Args:
        corpus: see `tfnlp.objectives.Corpus`.
        template: the `SpecialTokenTemplate` of two texts.
        ends: (sentences + 1,) int64, cumulative token counts over all non-empty sentences of the
            corpus.
        document_starts: (documents + 1,) int64, the first such sentence of each document.
        documents: (n,) int32, the document of each passage.
        starts: (n,) int64, its first sentence.
        counts: (n,) int32, its sentences.
        sizes: (n,) int32, the maximum number of tokens of its pair.
    """

    corpus: object
    template: object
    ends: np.ndarray
    document_starts: np.ndarray
    documents: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    sizes: np.ndarray

    choices = None  # as in `Encodings`

    @classmethod
    def from_corpus(cls, corpus, template, max_length, short_share, seed, least_documents=1):
        """Cut all documents into passages.

        A passage takes sentences up to the maximum length of a pair, or, in `short_share` of
        cases, up to a random length of at least 2. It ends with its document. Single-sentence
        passages are left out: BERT's own code pairs them with another document, so that more than
        half of all pairs are random.

        Raises:
            InputError: if `max_length` leaves no room for two tokens, no document has two
                sentences, or fewer than `least_documents` have a token.
        """
        room = template.room(max_length, texts=2)
        rng = np.random.default_rng(seed)
        sentence_sizes, document_starts = array.array("i", [0]), array.array("q", [0])
        documents, counts, sizes = (array.array("i") for _ in range(3))
        starts = array.array("q")
        for document in range(len(corpus)):
            lengths = [size for size in corpus.sentence_lengths(document).tolist() if size]
            start = 0
            for count in passage_counts(lengths, room, short_share, rng):
                documents.append(document)
                starts.append(document_starts[-1] + start)
                counts.append(count)
                sizes.append(min(room, sum(lengths[start : start + count])))
                start += count
            sentence_sizes.extend(lengths)
            document_starts.append(document_starts[-1] + len(lengths))
        sentence_counts = np.diff(document_starts)
        with_text = np.count_nonzero(sentence_counts)
        if not documents or with_text < least_documents:
            raise InputError(
                f"The corpus has {with_text} documents with text, {len(set(documents))} of them "
                f"with two sentences, but pairs take {least_documents} and 1; keep the borders of "
                "documents, and one sentence a line."
            )
        if alone := np.count_nonzero(sentence_counts == 1):
            logging.warning(
                "%d of %d documents have one sentence: no pairs are of them.", alone, len(corpus)
            )
        columns = map(np.asarray, (document_starts, documents, starts, counts, sizes))
        return cls(corpus, template, np.cumsum(sentence_sizes, dtype="int64"), *columns)

    def __len__(self):
        return len(self.sizes)

    @property
    def lengths(self):
        """The maximum number of ids of each pair, including special tokens: (n,) int64."""
        return self.sizes.astype("int64") + self.template.pair_size

    def text(self, document, start, end):
        """Return the ids of sentences of a document, with sentence indices of the whole corpus."""
        first = self.ends[self.document_starts[document]]
        return self.corpus.part(document, self.ends[start] - first, self.ends[end] - first)

    def halves(self, index, rng):
        """Split a passage at a random sentence boundary.

        Return its document, start, split and end.
        """
        start = int(self.starts[index])
        end = start + int(self.counts[index])
        return int(self.documents[index]), start, int(rng.integers(start + 1, end)), end

    @functools.cached_property
    def _by_size(self):
        """The documents by increasing size, and their token counts, (documents,) int64 each."""
        sizes = np.diff(self.ends[self.document_starts])
        order = np.argsort(sizes, kind="stable")
        return order, sizes[order]

    def other_text(self, document, size, rng):
        """Draw whole sentences of another document with about `size` tokens, 1 or more.

        The nearest in length of up to `TRIES` draws is taken. Each starts where at least as many
        tokens are left in its document, or at the start of a document if no other one has as many.

        Returns:
            The document, its first sentence and the one after its last, as arguments of `text`.
        """
        order, sizes = self._by_size
        least = np.searchsorted(sizes, size)
        if np.all(order[least:] == document):
            least = np.searchsorted(sizes, 1)
        drawn = np.array([document])
        while np.all(drawn == document):
            drawn = order[rng.integers(least, len(order), TRIES)]
        drawn = drawn[drawn != document]
        first, stop = self.document_starts[drawn], self.document_starts[drawn + 1]
        last = np.searchsorted(self.ends, self.ends[stop] - size, "right")
        starts = rng.integers(first, np.maximum(last, first + 1))
        ends = np.minimum(np.searchsorted(self.ends, self.ends[starts] + size), stop)
        nearest = np.argmin(np.abs(self.ends[ends] - self.ends[starts] - size))
        return tuple(int(x[nearest]) for x in (drawn, starts, ends))

    def fingerprint(self):
        """Return a SHA-256 of all passages."""
        template = (self.template.pair, self.template.pair_segments)
        index = self.documents, self.starts, self.counts, self.sizes
        return index_fingerprint(self.corpus, template, *index)


def passage_counts(sizes, room, short_share, rng):
    """Return the number of sentences of each passage of a document, from its sentence sizes."""
    counts, start = [], 0
    while len(sizes) - start > 1:
        short = rng.random() < short_share
        target = rng.integers(2, room + 1) if short else room
        end, tokens = start, 0
        while end < len(sizes) and (tokens < target or end - start < 2):
            tokens += sizes[end]
            end += 1
        if len(sizes) - end == 1:  # do not leave a last sentence alone
            end += 1
        counts.append(end - start)
        start = end
    return counts
