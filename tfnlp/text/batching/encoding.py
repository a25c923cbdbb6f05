"""Encoded texts: a single encoding, and large collections in flat arrays."""

import array
import collections.abc
import dataclasses
import hashlib
import itertools
from typing import NamedTuple

import numpy as np


@dataclasses.dataclass(frozen=True)
class Encoding:
    """The ids of a text, a pair of texts or a window.

    Args:
        token_ids: list of ids, including special tokens.
        segment_ids: the segment of each token; as long as `token_ids`.
        truncated: whether tokens were dropped for a length limit; in a window, whether its
            question lost tokens.
        offsets: (first character, end character) of each token in its own text, (0, 0) for special
            tokens; None unless requested.
        sources: 0 for tokens of the first text, 1 for those of the second, None for special
            tokens; None unless requested.
        words: the word index of each token; None for special tokens and for the rest of a word
            that begins in an earlier window. Only from `encode_words`.
        example: the index of the text of a window. Only from `encode_words`, `encode_text_windows`
            and `encode_windows`.
    """

    token_ids: list
    segment_ids: list
    truncated: bool = False
    offsets: list | None = None
    sources: list | None = None
    words: list | None = None
    example: int | None = None


class FurtherInput(NamedTuple):
    """Input of a model beside the ids: for each token a number, or a row of a table.

    Attributes:
        ids: (tokens,) int32, 0 for nothing.
        table: (rows, W), of which each token has the row of its id; None for the id itself. Row 0
            is all 0, that of padding.
    """

    ids: np.ndarray
    table: np.ndarray | None = None


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Encodings(collections.abc.Sequence):
    """A sequence of `Encoding`s, stored as flat arrays and built on access.

    It takes some 5 bytes a token, and 13 more with offsets, sources and words. Lists of Python
    integers would take ten times that.

    Args:
        token_ids: (tokens,) int32, all rows concatenated.
        segment_ids: (tokens,) uint8.
        starts: (rows + 1,) int64, the start of each row, and the end of the last.
        truncated: (rows,) bool.
        offsets: (tokens, 2) int32, or None.
        sources: (tokens,) int8, -1 for special tokens; or None.
        words: (tokens,) int32, -1 for none; or None.
        examples: (rows,) int32, or None.
        choices: the number of rows in each item of a multiple-choice task; None if each row is an
            item.
        further: {name: `FurtherInput`} of what models read beside tokens and segments.
    """

    token_ids: np.ndarray
    segment_ids: np.ndarray
    starts: np.ndarray
    truncated: np.ndarray
    offsets: np.ndarray | None = None
    sources: np.ndarray | None = None
    words: np.ndarray | None = None
    examples: np.ndarray | None = None
    choices: int | None = None
    further: dict[str, FurtherInput] = dataclasses.field(default_factory=dict)

    @classmethod
    def from_list(cls, encodings):
        """Build `Encodings` from a list of `Encoding`s or of equally long lists of them.

        Only ids, segments and `truncated` are kept.
        """
        if isinstance(encodings, cls):
            return encodings
        choices = None
        if encodings and isinstance(encodings[0], list | tuple):
            choices = len(encodings[0])
            for i, rows in enumerate(encodings):
                if len(rows) != choices:
                    raise ValueError(
                        f"encodings[{i}] has {len(rows)} choices and encodings[0] {choices}; give "
                        "each the same number."
                    )
            encodings = itertools.chain.from_iterable(encodings)
        rows = EncodingsBuilder()
        for e in encodings:
            rows.add_ids(list(e.token_ids), list(e.segment_ids), e.truncated)
        return rows.finish(choices)

    def __len__(self):
        return len(self.truncated) // (self.choices or 1)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[k] for k in range(len(self))[i]]
        i = range(len(self))[i]  # supports negative indices, and its IndexError ends an iteration
        if self.choices is None:
            return self._row(i)
        return [self._row(i * self.choices + k) for k in range(self.choices)]

    @property
    def lengths(self):
        """The length of each item, that of its longest row: (items,) int64."""
        lengths = np.diff(self.starts)
        return lengths if self.choices is None else lengths.reshape(-1, self.choices).max(1)

    def padded(self, items, pad_token_id):
        """Return some items as model inputs.

        Args:
            items: (B,) integers.
            pad_token_id: the id of padding.

        Returns:
            A dict of `token_ids`, `segment_ids` and `padding_mask`, (B, L) int32 each, or
            (B, choices, L) for multiple choice; and of any further inputs, (B, L) likewise or
            (B, L, W), without the places that no token of them has.
        """
        rows = np.asarray(items, "int64")
        if self.choices is not None:  # (items, choices)
            rows = rows[:, None] * self.choices + np.arange(self.choices)
        starts = self.starts[rows][..., None]
        lengths = self.starts[rows + 1][..., None] - starts
        places = np.arange(lengths.max(initial=1))
        mask = places < lengths  # (B, L) or (B, choices, L)
        places = (starts + places)[mask]
        inputs = {"padding_mask": mask.astype("int32")}
        flat = {"token_ids": self.token_ids, "segment_ids": self.segment_ids}
        for name, ids in (flat | {name: ids for name, (ids, _) in self.further.items()}).items():
            inputs[name] = np.full(mask.shape, pad_token_id if name == "token_ids" else 0, "int32")
            inputs[name][mask] = ids[places]
        for name, (_, table) in self.further.items():
            if table is not None:
                inputs[name] = narrow(table[inputs[name]])
        return inputs

    def select(self, kept):
        """Return the rows where `kept`, (rows,) bool, is true, with ids and segments alone."""
        is_kept = np.repeat(kept, np.diff(self.starts))
        return self._with_tokens(is_kept, np.diff(self.starts)[kept], self.truncated[kept])

    def truncate(self, max_length, end_token_id=None):
        """Return rows of at most `max_length` tokens, with ids and segments alone.

        Args:
            max_length: the maximum number of tokens.
            end_token_id: the last token of a truncated row; None to drop its end token.
        """
        lengths = np.diff(self.starts)
        places = np.arange(len(self.token_ids)) - np.repeat(self.starts[:-1], lengths)
        rows = self._with_tokens(
            places < max_length, np.minimum(lengths, max_length), lengths > max_length
        )
        if end_token_id is not None:
            rows.token_ids[rows.starts[1:][rows.truncated] - 1] = end_token_id
        return rows

    def _with_tokens(self, is_kept, lengths, truncated):
        """Return the tokens where `is_kept`, (tokens,) bool, is true, in rows of new lengths."""
        starts = np.append(0, np.cumsum(lengths))
        return Encodings(self.token_ids[is_kept], self.segment_ids[is_kept], starts, truncated)

    def fingerprint(self):
        """Return a SHA-256 of the ids, segments and further inputs of all rows."""
        digest = hashlib.sha256(f"{self.choices}".encode())
        further = itertools.chain.from_iterable(self.further.values())
        for flat in (self.starts, self.token_ids, self.segment_ids, *further):
            if flat is not None:
                digest.update(np.ascontiguousarray(flat))
        return digest.hexdigest()

    def _row(self, row):
        span = slice(self.starts[row], self.starts[row + 1])
        offsets, examples = self.offsets, self.examples
        return Encoding(
            self.token_ids[span].tolist(),
            self.segment_ids[span].tolist(),
            truncated=bool(self.truncated[row]),
            offsets=None if offsets is None else list(map(tuple, offsets[span].tolist())),
            sources=_or_none(self.sources, span),
            words=_or_none(self.words, span),
            example=None if examples is None else int(examples[row]),
        )


class EncodingsBuilder:
    """Builder of `Encodings` with arrays that grow in place.

    Args:
        offsets: whether rows have `offsets` and `sources`.
        words: whether rows have `words`.
        examples: whether rows have an `example`.
    """

    def __init__(self, offsets=False, words=False, examples=False):
        self._ids, self._segments = array.array("i"), array.array("B")
        self._starts, self._truncated = array.array("q", [0]), array.array("b")
        self._offsets = array.array("i") if offsets else None
        self._sources = array.array("b") if offsets else None
        self._words = array.array("i") if words else None
        self._examples = array.array("i") if examples else None

    def add(self, e, truncated=False, example=None, continued=None, segments=None):
        """Add a row from an encoding of `tokenizers`, without the word index `continued`.

        Its segments are those of the encoding where None.
        """
        self.add_ids(e.ids, e.type_ids if segments is None else segments, truncated)
        if self._offsets is not None:
            self._offsets.extend(itertools.chain.from_iterable(e.offsets))
            self._sources.extend(-1 if source is None else source for source in e.sequence_ids)
        if self._words is not None:
            self._words.extend(-1 if word in (None, continued) else word for word in e.word_ids)
        if self._examples is not None:
            self._examples.append(example)

    def add_ids(self, ids, segments, truncated=False):
        """Add a row from its ids and segments."""
        self._ids.fromlist(ids)
        self._segments.fromlist(segments)
        self._starts.append(len(self._ids))
        self._truncated.append(truncated)

    def finish(self, choices=None):
        """Return the `Encodings` of all rows; ids and offsets are not copied."""
        offsets, sources, words, examples = (
            None if column is None else np.asarray(column)
            for column in (self._offsets, self._sources, self._words, self._examples)
        )
        return Encodings(
            np.asarray(self._ids),
            np.asarray(self._segments),
            np.asarray(self._starts),
            truncated=np.asarray(self._truncated).astype(bool),
            offsets=None if offsets is None else offsets.reshape(-1, 2),
            sources=sources,
            words=words,
            examples=examples,
            choices=choices,
        )


def narrow(rows):
    """Return rows (..., W) as int32, without the last places that are 0 in all of them."""
    width = max(1, int(np.count_nonzero(rows, axis=-1).max(initial=1)))
    return rows[..., :width].astype("int32")


def _or_none(flat, span):
    if flat is None:
        return None
    return [None if value < 0 else value for value in flat[span].tolist()]
