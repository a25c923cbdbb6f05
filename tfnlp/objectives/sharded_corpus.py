"""A prepared corpus on disk, of which one document at a time is in memory."""

import functools
import itertools
import os
import pathlib

import numpy as np

from tfnlp.corpora.records import document_from_bytes, unframe
from tfnlp.corpora.shards import (
    MEND,
    read_index,
    read_manifest,
    read_sentence_lengths,
    shard_path,
    tokenizer_hash,
)
from tfnlp.errors import InputError

# Files that are open at a time.
OPEN_FILES = 64


class ShardedCorpus:
    """Documents of sentences, tokenised, without special tokens, on disk: as a `Corpus`.

    What is in memory is some 32 bytes for each document, or for each thousand tokens of a long
    one. A document is one read at its place; threads may read at once.

    Args:
        folder: of `tfnlp.corpora.prepare_corpus`.
        tokenizer: which it must have been prepared with, if given; see `tfnlp.text`.

    Raises:
        InputError: if the folder is no whole prepared corpus, a shard of it is missing, cut or of
            another corpus, or it was prepared with another tokenizer. What of a shard is damaged
            inside is found when it is read.
    """

    def __init__(self, folder, tokenizer=None):
        self.folder = pathlib.Path(folder)
        self.manifest = read_manifest(folder)
        if tokenizer and tokenizer_hash(tokenizer) != self.manifest["settings"]["tokenizer"]:
            raise InputError(
                f"{folder} was prepared with another tokenizer; give that one, or prepare the "
                "texts with this one."
            )
        shards = enumerate(self.manifest["shards"])
        indices = [read_index(folder, shard, number) for number, shard in shards]
        # The first record of each shard, and the end.
        self._shards = np.cumsum([0, *map(len, indices)])
        self._ends, tokens, self._sentences, continues = (
            np.concatenate([index[:, column] for index in indices]) for column in range(4)
        )
        # The first record of each document, and the end; the first token of each record likewise.
        self._records = np.append(np.flatnonzero(continues == 0), len(continues))
        self._tokens = np.append(0, np.cumsum(tokens))
        self._open = functools.lru_cache(OPEN_FILES)(self._open_shard)

    def __len__(self):
        """The number of documents."""
        return len(self._records) - 1

    @property
    def sentence_counts(self):
        """(documents,) int64, the sentences of each."""
        return np.add.reduceat(self._sentences, self._records[:-1])

    @property
    def token_counts(self):
        """(documents,) int64, the tokens of each."""
        return np.diff(self._tokens[self._records])

    def document(self, index):
        """A document's ids, (tokens,) int32.

        Raises:
            InputError: if a record of it is damaged.
        """
        return _joined([ids for ids, _ in self._read(*self._range(index))])

    def part(self, index, start, stop):
        """A document's ids from `start` to before `stop`, (tokens,) int32: no more than it has.

        Of a long document only the records that hold them are read.

        Args:
            index: of the document.
            start, stop: 0 or more.

        Raises:
            InputError: if one of those records is damaged.
        """
        first, end = self._range(index)
        begins = self._tokens[first : end + 1] - self._tokens[first]
        if not 0 <= start < min(stop, begins[-1]):
            return np.zeros(0, "int32")
        a = int(np.searchsorted(begins, start, side="right")) - 1
        b = int(np.searchsorted(begins[:-1], stop))
        ids = _joined([ids for ids, _ in self._read(first + a, first + b)])
        return ids[start - begins[a] : stop - begins[a]]

    def sentences(self, index):
        """A document's sentences, a list of (tokens,) int32.

        Raises:
            InputError: if a record of it is damaged.
        """
        found = []
        for ids, lengths in self._read(*self._range(index)):
            ends = np.cumsum(lengths)
            found += [ids[end - n : end] for end, n in zip(ends, lengths, strict=True)]
        return found

    def sentence_lengths(self, index):
        """The tokens of each of a document's sentences, (sentences,) int64.

        No document is read for it, but at the first call the lengths of all, 4 bytes a sentence.

        Raises:
            InputError: if these are missing or damaged.
        """
        lengths, firsts = self._sentence_lengths
        first, end = self._range(index)
        return lengths[firsts[first] : firsts[end]].astype("int64")

    @functools.cached_property
    def _sentence_lengths(self):
        """The tokens of all sentences, and the first sentence of each record."""
        shards = enumerate(self.manifest["shards"])
        lengths = [read_sentence_lengths(self.folder, shard, number) for number, shard in shards]
        return np.concatenate(lengths), np.append(0, np.cumsum(self._sentences))

    def shard(self, index):
        """The path of the shard that a document begins in."""
        number = int(np.searchsorted(self._shards, self._records[index], side="right")) - 1
        return shard_path(self.folder, number, "tfrecord")

    @property
    def unknown_share(self):
        """The share of its tokens that are unknown to the tokenizer."""
        return self.manifest["counts"]["unknown"] / self.manifest["counts"]["tokens"]

    def fingerprint(self):
        """A SHA-256 of all ids and borders, as they were when they were written."""
        return self.manifest["fingerprint"]

    def _range(self, index):
        """The first record of a document, and the one after its last."""
        if not 0 <= index < len(self):
            raise IndexError(f"document {index} of {len(self)}")
        return int(self._records[index]), int(self._records[index + 1])

    def _open_shard(self, number):
        # Closes when the cache drops it and nobody reads from it any more.
        return open(shard_path(self.folder, number, "tfrecord"), "rb", buffering=0)

    def _read(self, first, end):
        """The ids and the sentences' tokens of records of one shard, a list of pairs."""
        shard = int(np.searchsorted(self._shards, first, side="right")) - 1
        before = int(self._shards[shard])
        ends = [int(self._ends[first - 1]) if first > before else 0]
        ends += self._ends[first:end].tolist()
        record, found = first, []
        try:
            file = self._open(shard)  # held, as another thread may have it dropped meanwhile
            content = os.pread(file.fileno(), ends[-1] - ends[0], ends[0])
            for record, (a, b) in enumerate(itertools.pairwise(ends), start=first):
                ids, lengths = document_from_bytes(unframe(content[a - ends[0] : b - ends[0]]))
                tokens = self._tokens[record + 1] - self._tokens[record]
                if (len(ids), len(lengths)) != (tokens, self._sentences[record]):
                    raise ValueError("it is another document")
                found.append((ids, lengths))
        except (OSError, ValueError) as e:
            raise self._damaged(shard, record - before, e) from None
        return found

    def _damaged(self, shard, record, why):
        return InputError(
            f"{shard_path(self.folder, shard, 'tfrecord')}, record {record} (counted from 0), "
            f"cannot be read ({why}); {MEND}"
        )


def _joined(parts):
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
