"""Texts as ids: one of them, and millions of them in a few flat arrays."""

import array
import collections.abc
import dataclasses
import hashlib
import itertools

import numpy as np


@dataclasses.dataclass(frozen=True)
class Encoding:
    """One text, or a pair, or a window of one, as ids.

    Args:
        token_ids: list of ids, special tokens among them.
        segment_ids: which segment each token is of; as long as `token_ids`.
        cut: whether tokens were dropped to keep to a length limit; of a window, whether its
            question was cut.
        offsets: the first character of each token and the one after its last, counted in its
            own text; (0, 0) for special tokens. Only where asked for, else None.
        sources: 0 for tokens of the first text, 1 for the second's, None for special ones;
            likewise.
        words: the word that each token is of, None for special ones and for the rest of a word
            that begins in an earlier window; of `encode_words` only.
        example: the text that a window is of; of `encode_words`, `encode_text_windows` and
            `encode_windows` only.
    """

    token_ids: list
    segment_ids: list
    cut: bool = False
    offsets: list | None = None
    sources: list | None = None
    words: list | None = None
    example: int | None = None


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Encodings(collections.abc.Sequence):
    """A sequence of `Encoding`s that are made when they are asked for.

    What is kept is some 5 bytes a token, 13 more with places: lists of Python's integers
    would take ten times that.

    Args:
        token_ids: (tokens,) int32, all rows end to end.
        segment_ids: (tokens,) uint8.
        starts: (rows + 1,) int64; where each row begins, and the end.
        cut: (rows,) bool.
        offsets: (tokens, 2) int32, or None.
        sources: (tokens,) int8, -1 for special tokens; or None.
        words: (tokens,) int32, likewise.
        examples: (rows,) int32, or None.
        choices: how many rows stand together to choose from, an item being a list of as many;
            None where each row is an item.
    """

    token_ids: np.ndarray
    segment_ids: np.ndarray
    starts: np.ndarray
    cut: np.ndarray
    offsets: np.ndarray | None = None
    sources: np.ndarray | None = None
    words: np.ndarray | None = None
    examples: np.ndarray | None = None
    choices: int | None = None

    @classmethod
    def of(cls, encodings):
        """From a list of `Encoding`s, or of lists of as many each to choose from: ids alone."""
        if isinstance(encodings, cls):
            return encodings
        choices = None
        if encodings and isinstance(encodings[0], list | tuple):
            choices = len(encodings[0])
            for i, rows in enumerate(encodings):
                if len(rows) != choices:
                    raise ValueError(
                        f"encodings[{i}] has {len(rows)} rows to choose from and encodings[0] "
                        f"{choices}; give as many each."
                    )
            encodings = itertools.chain.from_iterable(encodings)
        rows = EncodingsBuilder()
        for e in encodings:
            rows.add_ids(list(e.token_ids), list(e.segment_ids), e.cut)
        return rows.finish(choices)

    def __len__(self):
        return len(self.cut) // (self.choices or 1)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[k] for k in range(len(self))[i]]
        i = range(len(self))[i]  # counts from the end too, and ends an iteration
        if self.choices is None:
            return self._row(i)
        return [self._row(i * self.choices + k) for k in range(self.choices)]

    @property
    def lengths(self):
        """The tokens of each item, of its longest row: (items,) int64."""
        lengths = np.diff(self.starts)
        return lengths if self.choices is None else lengths.reshape(-1, self.choices).max(1)

    def padded(self, items, pad_token_id):
        """Some items as a model's inputs.

        Args:
            items: (B,) integers.
            pad_token_id: the id that fills the ends.

        Returns:
            A dict of `token_ids`, `segment_ids` and `padding_mask`, (B, L) int32 each, or
            (B, choices, L).
        """
        rows = np.asarray(items, "int64")
        if self.choices is not None:
            rows = (rows[:, None] * self.choices + np.arange(self.choices)).ravel()
        starts = self.starts[rows][:, None]
        lengths = self.starts[rows + 1][:, None] - starts
        places = np.arange(lengths.max(initial=1))
        mask = places < lengths  # (rows, L)
        places = (starts + places)[mask]
        shape = mask.shape
        if self.choices is not None:
            shape = (len(items), self.choices, shape[1])
        inputs = {"padding_mask": mask.astype("int32").reshape(shape)}
        for name, flat, fill in (
            ("token_ids", self.token_ids, pad_token_id),
            ("segment_ids", self.segment_ids, 0),
        ):
            values = np.full(mask.shape, fill, "int32")
            values[mask] = flat[places]
            inputs[name] = values.reshape(shape)
        return inputs

    def fingerprint(self):
        """A SHA-256 of the ids and the segments of all rows."""
        digest = hashlib.sha256(f"{self.choices}".encode())
        for flat in (self.starts, self.token_ids, self.segment_ids):
            digest.update(np.ascontiguousarray(flat))
        return digest.hexdigest()

    def _row(self, row):
        here = slice(self.starts[row], self.starts[row + 1])
        return Encoding(
            self.token_ids[here].tolist(),
            self.segment_ids[here].tolist(),
            bool(self.cut[row]),
            None if self.offsets is None else list(map(tuple, self.offsets[here].tolist())),
            _or_none(self.sources, here),
            _or_none(self.words, here),
            None if self.examples is None else int(self.examples[row]),
        )


class EncodingsBuilder:
    """Collects rows into `Encodings`; its arrays grow in place.

    Args:
        offsets: whether rows have `offsets` and `sources`.
        words: whether rows have `words`.
        examples: whether rows have an `example`.
    """

    def __init__(self, offsets=False, words=False, examples=False):
        self._ids, self._segments = array.array("i"), array.array("B")
        self._starts, self._cut = array.array("q", [0]), array.array("b")
        self._offsets = array.array("i") if offsets else None
        self._sources = array.array("b") if offsets else None
        self._words = array.array("i") if words else None
        self._examples = array.array("i") if examples else None

    def add(self, e, cut=False, example=None, continued=None):
        """One row, from an encoding of `tokenizers`; the word `continued` is left out."""
        self.add_ids(e.ids, e.type_ids, cut)
        if self._offsets is not None:
            self._offsets.extend(itertools.chain.from_iterable(e.offsets))
            self._sources.extend(-1 if source is None else source for source in e.sequence_ids)
        if self._words is not None:
            self._words.extend(-1 if word in (None, continued) else word for word in e.word_ids)
        if self._examples is not None:
            self._examples.append(example)

    def add_ids(self, ids, segments, cut=False):
        """One row, from its ids alone."""
        self._ids.fromlist(ids)
        self._segments.fromlist(segments)
        self._starts.append(len(self._ids))
        self._cut.append(cut)

    def finish(self, choices=None):
        """The `Encodings` of all rows; nothing is copied."""
        flat = [
            None if column is None else np.asarray(column)
            for column in (self._offsets, self._sources, self._words, self._examples)
        ]
        if flat[0] is not None:
            flat[0] = flat[0].reshape(-1, 2)
        return Encodings(
            np.asarray(self._ids),
            np.asarray(self._segments),
            np.asarray(self._starts),
            np.asarray(self._cut).astype(bool),
            *flat,
            choices,
        )


def _or_none(flat, here):
    if flat is None:
        return None
    return [None if value < 0 else value for value in flat[here].tolist()]
