"""Segments of a corpus: whole sentences of one document, up to a maximum length."""

import array
import dataclasses
import hashlib

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Segments:
    """Segments of a corpus's documents; special tokens are added on access.

    It takes 12 bytes a segment; tokens stay in the corpus. It can replace the encodings of
    `tfnlp.text.LengthBatches`.

    Args:
        corpus: see `tfnlp.objectives.Corpus`.
        template: the `SpecialTokenTemplate` of a single text.
        documents: (n,) int32, the document of each segment.
        starts: (n,) int32, its first token in the document.
        sizes: (n,) int32, its number of tokens.
    """

    corpus: object
    template: object
    documents: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray

    choices = None  # as in `Encodings`

    @classmethod
    def from_corpus(cls, corpus, template, max_length, filled=True):
        """Cut all documents into segments.

        Args:
            corpus: see `tfnlp.objectives.Corpus`.
            template: the `SpecialTokenTemplate` of a single text.
            max_length: the maximum number of ids of a text, including special tokens; a longer
                sentence is cut.
            filled: whether a text is filled with whole sentences of a document (Liu et al. 2019,
                section 4.2, 'DOC-SENTENCES'); else each sentence is a text.

        Raises:
            InputError: if `max_length` leaves no room.
        """
        room = template.room(max_length, texts=1)
        documents, starts, sizes = (array.array("i") for _ in range(3))
        for document in range(len(corpus)):
            start = 0
            for end in stretch_ends(corpus.sentence_lengths(document), room, filled):
                documents.append(document)
                starts.append(start)
                sizes.append(end - start)
                start = end
        return cls(corpus, template, *map(np.asarray, (documents, starts, sizes)))

    def __len__(self):
        return len(self.sizes)

    @property
    def lengths(self):
        """The number of ids of each text, including special tokens: (n,) int64."""
        return self.sizes.astype("int64") + self.template.single_size

    def ids(self, index):
        """Return the ids of a text without special tokens, (tokens,) int32."""
        start = self.starts[index]
        return self.corpus.part(self.documents[index], start, start + self.sizes[index])

    def padded(self, items, pad_token_id):
        """Return some texts as model inputs, as in `Encodings.padded`."""
        return pad([self.template.around(self.ids(i)) for i in items], pad_token_id)

    def fingerprint(self):
        """Return a SHA-256 of all texts."""
        template = (self.template.single, self.template.single_segment)
        return index_fingerprint(self.corpus, template, self.documents, self.starts, self.sizes)


def stretch_ends(sizes, room, filled=True):
    """Return the ends of a document's segments, a list of ints, in tokens of the document.

    Args:
        sizes: the number of tokens of each sentence.
        room: the maximum number of tokens of a segment; a longer sentence is cut, and its rest is
            joined with the next sentence if `filled`.
        filled: whether a segment may have several sentences.
    """
    ends, start, end = [], 0, 0
    for size in sizes:
        if end > start and (not filled or end + size - start > room):
            ends.append(end)
            start = end
        end += size
        while end - start > room:
            start += room
            ends.append(start)
    return [*ends, end] if end > start else ends


def pad(rows, pad_token_id):
    """Return rows of (token ids, segment ids), (n,) int32 each, as model inputs.

    Returns:
        A dict of `token_ids`, `segment_ids` and `padding_mask`, (B, L) int32 each.
    """
    lengths = np.array([len(ids) for ids, _ in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    inputs = {"padding_mask": mask.astype("int32")}
    fills = {"token_ids": pad_token_id, "segment_ids": 0}
    for (name, fill), values in zip(fills.items(), zip(*rows, strict=True), strict=True):
        inputs[name] = np.full(mask.shape, fill, "int32")
        inputs[name][mask] = np.concatenate(values)
    return inputs


def index_fingerprint(corpus, template, *columns):
    """Return a SHA-256 of texts that an index of arrays cuts from a corpus."""
    digest = hashlib.sha256(f"{corpus.fingerprint()} {template}".encode())
    for column in columns:
        digest.update(np.ascontiguousarray(column))
    return digest.hexdigest()
