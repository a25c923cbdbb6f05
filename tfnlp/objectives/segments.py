"""Texts for a model, cut from a corpus: whole sentences of one document, up to a length."""

import array
import dataclasses
import hashlib

import numpy as np

from tfnlp.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Segments:
    """Stretches of a corpus' documents, in their special tokens when they are asked for.

    What is kept is 12 bytes a stretch; tokens stay where the corpus has them. They stand for the
    encodings of `tfnlp.text.LengthBatches`.

    Args:
        corpus: see `tfnlp.objectives.Corpus`.
        frame: a `Frame`, of one text.
        documents: (n,) int32, the document of each.
        starts: (n,) int32, its first token in the document.
        sizes: (n,) int32, its tokens.
    """

    corpus: object
    frame: object
    documents: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray

    choices = None  # as `Encodings` have it

    @classmethod
    def of(cls, corpus, frame, max_length, packed=True):
        """Cuts all documents.

        Args:
            corpus: see `tfnlp.objectives.Corpus`.
            frame: a `Frame`, of one text.
            max_length: the most ids of a text, special tokens counted; a sentence of more is cut.
            packed: whether a text has as many whole sentences of a document as it has room for
                (Liu et al. 2019, section 4.2, 'DOC-SENTENCES'); else each sentence is a text.

        Raises:
            InputError: if `max_length` leaves no room.
        """
        room = max_length - frame.single_size
        if room < 1:
            raise InputError(
                f"max_length={max_length} leaves no room for text beside the {frame.single_size} "
                f"special tokens; give at least {frame.single_size + 1}."
            )
        documents, starts, sizes = (array.array("i") for _ in range(3))
        for document in range(len(corpus)):
            start = 0
            sentences = corpus.sentence_lengths(document)
            for end in stretch_ends(sentences, room, packed):
                documents.append(document)
                starts.append(start)
                sizes.append(end - start)
                start = end
        return cls(corpus, frame, *map(np.asarray, (documents, starts, sizes)))

    def __len__(self):
        return len(self.sizes)

    @property
    def lengths(self):
        """The ids of each text, special tokens counted: (n,) int64."""
        return self.sizes.astype("int64") + self.frame.single_size

    def ids(self, index):
        """A text's own ids, (tokens,) int32."""
        start = self.starts[index]
        return self.corpus.part(self.documents[index], start, start + self.sizes[index])

    def padded(self, items, pad_token_id):
        """Some texts as a model's inputs, as `Encodings.padded` gives them."""
        return pad([self.frame.around(self.ids(i)) for i in items], pad_token_id)

    def fingerprint(self):
        """A SHA-256 of all texts."""
        frame = (self.frame.single, self.frame.single_segment)
        digest = hashlib.sha256(f"{self.corpus.fingerprint()} {frame}".encode())
        for index in (self.documents, self.starts, self.sizes):
            digest.update(np.ascontiguousarray(index))
        return digest.hexdigest()


def stretch_ends(sizes, room, packed=True):
    """Where a document's stretches end.

    Args:
        sizes: the tokens of each sentence.
        room: the most tokens of a stretch; a sentence of more is cut, and what is left of it
            goes on with the next.
        packed: whether a stretch has several sentences.

    Returns:
        A list of ints, counted in the document's tokens.
    """
    ends, start, end = [], 0, 0
    for size in sizes:
        if end > start and (not packed or end + size - start > room):
            ends.append(end)
            start = end
        end += size
        while end - start > room:
            start += room
            ends.append(start)
    return [*ends, end] if end > start else ends


def pad(rows, pad_token_id):
    """Rows of (token ids, segment ids) as a model's inputs.

    Args:
        rows: a list of pairs of (n,) int32.
        pad_token_id: the id that fills the ends.

    Returns:
        A dict of `token_ids`, `segment_ids` and `padding_mask`, (B, L) int32 each.
    """
    lengths = np.array([len(ids) for ids, _ in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    inputs = {"padding_mask": mask.astype("int32")}
    for name, fill, values in zip(
        ("token_ids", "segment_ids"), (pad_token_id, 0), zip(*rows, strict=True), strict=True
    ):
        inputs[name] = np.full(mask.shape, fill, "int32")
        inputs[name][mask] = np.concatenate(values)
    return inputs
