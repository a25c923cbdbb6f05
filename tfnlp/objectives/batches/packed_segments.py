"""Texts of several documents: with the documents apart, or as one text."""

import array
import bisect
import dataclasses
import hashlib

import numpy as np

from tfnlp.objectives.batches.segments import Segments, pad


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PackedSegments(Segments):
    """Texts that each hold several segments of a corpus.

    They take 8 bytes a text and 8 a segment, beside the segments.

    Args:
        corpus, template, documents, starts, sizes: of the segments, as in `Segments`.
        order: (segments,) int64, the segments of the first text, those of the second, ...
        ends: (n,) int64, the end of each text in `order`.
        joined: whether the segments of a text share its special tokens, with a separator between
            two; else each has its own, and the input `positions` begins at 0 with each.
    """

    order: np.ndarray
    ends: np.ndarray
    joined: bool = False

    def __len__(self):
        return len(self.ends)

    @property
    def further(self):
        """The names of further inputs, as in `Encodings`."""
        return {} if self.joined else {"positions": (None, None)}

    @property
    def lengths(self):
        """The number of ids of each text, including special tokens: (n,) int64."""
        sizes = np.cumsum(np.append(0, super().lengths[self.order]))
        lengths = np.diff(sizes[self.ends], prepend=0)
        if self.joined:  # a separator between two in place of the special tokens of each
            between = np.diff(self.ends, prepend=0) - 1
            lengths -= between * (self.template.single_size - len(separator(self.template)))
        return lengths

    def _parts(self, index):
        """Return the numbers of the segments of a text."""
        return self.order[self.ends[index - 1] if index else 0 : self.ends[index]]

    def padded(self, items, pad_token_id):
        """Return some texts as model inputs, as in `Encodings.padded`, and any `positions`."""
        if self.joined:
            return pad([self._joined_text(self._parts(i)) for i in items], pad_token_id)
        rows, positions = [], []
        for i in items:
            parts = [self.template.around(self.ids(part)) for part in self._parts(i)]
            rows.append(tuple(map(np.concatenate, zip(*parts, strict=True))))
            positions.append(np.concatenate([np.arange(len(ids)) for ids, _ in parts]))
        inputs = pad(rows, pad_token_id)
        inputs["positions"] = np.zeros_like(inputs["token_ids"])
        inputs["positions"][inputs["padding_mask"] > 0] = np.concatenate(positions)
        return inputs

    def _joined_text(self, parts):
        """Return the ids and segment ids of segments as one text."""
        between = separator(self.template)
        ids = [x for part in parts for x in (self.ids(part), between)]
        return self.template.around(np.concatenate(ids[:-1]))

    def fingerprint(self):
        """Return a SHA-256 of all texts."""
        digest = hashlib.sha256(f"{super().fingerprint()} {self.joined}".encode())
        for column in (self.order, self.ends):
            digest.update(np.ascontiguousarray(column))
        return digest.hexdigest()


def separator(template):
    """Return the token between two documents of a joined text, (1,): that behind a text."""
    return np.array([token for token, _ in template.single[1][:1]], "int32")


def pack_segments(segments, max_length):
    """Fill texts with segments, each the longest that fits where it leaves the least room.

    That is best-fit decreasing; the texts of a corpus are the same in each epoch.

    Args:
        segments: `Segments`.
        max_length: the maximum number of ids of a text.

    Returns:
        `PackedSegments`.
    """
    lengths = segments.lengths
    texts, by_room, rooms = [], {}, []  # texts by their room; the rooms of any, ascending
    for number in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[number])
        place = bisect.bisect_left(rooms, length)
        if place == len(rooms):
            text, room = len(texts), max_length - length
            texts.append([number])
        else:
            room = rooms[place]
            text = by_room[room].pop()
            if not by_room[room]:
                rooms.pop(place)
            texts[text].append(number)
            room -= length
        if room not in rooms[bisect.bisect_left(rooms, room) :][:1]:
            bisect.insort(rooms, room)
        by_room.setdefault(room, []).append(text)
    order = np.array([number for text in texts for number in text], "int64")
    ends = np.cumsum([len(text) for text in texts], dtype="int64")
    return PackedSegments(**vars(segments), order=order, ends=ends)


def join_documents(corpus, template, max_length):
    """Fill texts with whole sentences in the order of a corpus, across documents.

    Liu et al. 2019, 'RoBERTa', section 4.2, 'FULL-SENTENCES': a separator stands between two
    documents.

    Args:
        corpus: see `tfnlp.objectives.Corpus`.
        template: the `SpecialTokenTemplate` of a single text.
        max_length: the maximum number of ids of a text; a longer sentence is cut.

    Returns:
        `PackedSegments`.

    Raises:
        InputError: if `max_length` leaves no room.
    """
    room, columns = template.room(max_length, texts=1), [array.array("i") for _ in range(3)]
    ends, used = array.array("q"), 0  # tokens of the present text

    def add(document, start, end):
        if end > start:
            for column, value in zip(columns, (document, start, end - start), strict=True):
                column.append(value)

    for document in range(len(corpus)):
        start = end = 0
        between = len(separator(template)) if used else 0
        for size in corpus.sentence_lengths(document).tolist():
            if used and size and used + between + size > room:
                add(document, start, end)
                ends.append(len(columns[0]))
                start, used, between = end, 0, 0
            end += size
            used, between = (used + between + size, 0) if size else (used, between)
            while used > room:  # a sentence that is longer
                add(document, start, start + room)
                ends.append(len(columns[0]))
                start, used = start + room, used - room
        add(document, start, end)
    if used:
        ends.append(len(columns[0]))
    columns = [*map(np.asarray, columns), np.arange(len(columns[0])), np.asarray(ends, "int64")]
    return PackedSegments(corpus, template, *columns, joined=True)
