"""Prepared corpora on disk, read one document at a time."""

import functools
import itertools
import os
import pathlib

import numpy as np

from tfnlp.corpora.shards import (
    MEND,
    read_index,
    read_manifest,
    read_sentence_lengths,
    shard_path,
    tokenizer_hash,
)
from tfnlp.corpora.tfrecords import document_from_bytes, unframe
from tfnlp.utils.errors import InputError

# The maximum number of open files.
OPEN_FILES = 64


class ShardedCorpus:
    """A `Corpus` on disk: tokenised documents of sentences, without special tokens.

    It takes some 32 bytes of memory for each document, or for each thousand tokens of a long one.
    A document is a single read at its offset. Several threads may read at once.

    Args:
        folder: the folder of `tfnlp.corpora.prepare_corpus`.
        tokenizer: the tokenizer that it must have been prepared with, or None to skip the check;
            see `tfnlp.text`.

    Raises:
        InputError: if the folder is not a complete prepared corpus, a shard is missing, truncated
            or of another corpus, or it was prepared with another tokenizer. Damage within a shard
            is detected when it is read, by any of the methods.
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
        # The first record of each document, and the first token of each record, both with
        # the end.
        self._records = np.append(np.flatnonzero(continues == 0), len(continues))
        self._tokens = np.append(0, np.cumsum(tokens))
        self._open = functools.lru_cache(OPEN_FILES)(self._open_shard)

    def __len__(self):
        """Return the number of documents."""
        return len(self._records) - 1

    @property
    def sentence_counts(self):
        """The number of sentences of each document, (documents,) int64."""
        return np.add.reduceat(self._sentences, self._records[:-1])

    @property
    def token_counts(self):
        """The number of tokens of each document, (documents,) int64."""
        return np.diff(self._tokens[self._records])

    def document(self, index):
        """Return the ids of a document, (tokens,) int32."""
        return self.part(index, 0, int(self._tokens[-1]))

    def part(self, index, start, stop):
        """Return the ids of a document from `start` to before `stop`, (tokens,) int32.

        The range is cut to the document. Only the records that hold it are read.
        """
        first, end = self._range(index)
        begins = self._tokens[first : end + 1] - self._tokens[first]
        if not 0 <= start < min(stop, begins[-1]):
            return np.zeros(0, "int32")
        a = int(np.searchsorted(begins, start, side="right")) - 1
        b = int(np.searchsorted(begins[:-1], stop))
        ids = np.concatenate([ids for ids, _ in self._read(first + a, first + b)])
        return ids[start - begins[a] : stop - begins[a]]

    def sentences(self, index):
        """Return the sentences of a document, a list of (tokens,) int32."""
        sentences = []
        for ids, lengths in self._read(*self._range(index)):
            ends = np.cumsum(lengths)
            sentences += [ids[end - n : end] for end, n in zip(ends, lengths, strict=True)]
        return sentences

    def sentence_lengths(self, index):
        """Return the number of tokens of each sentence of a document, (sentences,) int64.

        No document is read. The first call loads the lengths of all sentences, at 4 bytes each.
        """
        lengths, firsts = self._sentence_lengths
        first, end = self._range(index)
        return lengths[firsts[first] : firsts[end]].astype("int64")

    @functools.cached_property
    def _sentence_lengths(self):
        """The lengths of all sentences, and the first sentence of each record."""
        shards = enumerate(self.manifest["shards"])
        lengths = [read_sentence_lengths(self.folder, shard, number) for number, shard in shards]
        return np.concatenate(lengths), np.append(0, np.cumsum(self._sentences))

    def shard(self, index):
        """Return the path of the shard in which a document begins."""
        number = int(np.searchsorted(self._shards, self._records[index], side="right")) - 1
        return shard_path(self.folder, number, "tfrecord")

    @property
    def unknown_share(self):
        """The share of tokens that are unknown to the tokenizer."""
        return self.manifest["counts"]["unknown"] / self.manifest["counts"]["tokens"]

    def fingerprint(self):
        """Return the SHA-256 of the manifest, which covers all ids and boundaries as written."""
        return self.manifest["fingerprint"]

    def _range(self, index):
        """Return the first record of a document, and the one after its last."""
        if not 0 <= index < len(self):
            raise IndexError(f"document {index} of {len(self)}")
        return int(self._records[index]), int(self._records[index + 1])

    def _open_shard(self, number):
        # It closes once the cache drops it and no reader holds it.
        return open(shard_path(self.folder, number, "tfrecord"), "rb", buffering=0)

    def _read(self, first, end):
        """Return the (ids, sentence lengths) of each record in a range within a shard."""
        shard = int(np.searchsorted(self._shards, first, side="right")) - 1
        before = int(self._shards[shard])
        ends = [int(self._ends[first - 1]) if first > before else 0]
        ends += self._ends[first:end].tolist()
        record, records = first, []
        try:
            file = self._open(shard)  # kept open even if evicted from the cache
            content = os.pread(file.fileno(), ends[-1] - ends[0], ends[0])
            for record, (a, b) in enumerate(itertools.pairwise(ends), start=first):
                ids, lengths = document_from_bytes(unframe(content[a - ends[0] : b - ends[0]]))
                tokens = self._tokens[record + 1] - self._tokens[record]
                if (len(ids), len(lengths)) != (tokens, self._sentences[record]):
                    raise ValueError("it holds another document")
                records.append((ids, lengths))
        except (OSError, ValueError) as e:
            raise InputError(
                f"{shard_path(self.folder, shard, 'tfrecord')}, record {record - before} (counted "
                f"from 0), cannot be read ({e}); {MEND}"
            ) from None
        return records
