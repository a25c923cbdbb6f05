"""Prepared corpora on disk, read one document at a time."""

import bisect
import functools
import itertools
import pathlib

import numpy as np

from tfnlp.corpora.shards import MEND, read_array, read_manifest, shard_path, tokenizer_hash
from tfnlp.utils.errors import InputError

# The maximum number of mapped files.
MAPPED_FILES = 4096


class ShardedCorpus:
    """A `Corpus` on disk: tokenised documents of sentences, without special tokens.

    It takes 16 bytes of memory for each document; the ids are mapped files. Several threads may
    read at once.

    Args:
        folder: the folder of `tfnlp.corpora.prepare_corpus`.
        tokenizer: the tokenizer that it must have been prepared with, or None to skip the check;
            see `tfnlp.text`.

    Raises:
        InputError: if the folder is not a complete prepared corpus, a file is missing or of
            another size, or it was prepared with another tokenizer. Damage within a file is
            detected when it is first read, by any of the methods.
    """

    def __init__(self, folder, tokenizer=None):
        self.folder = pathlib.Path(folder)
        self.manifest = read_manifest(folder)
        if tokenizer and tokenizer_hash(tokenizer) != self.manifest["settings"]["tokenizer"]:
            raise InputError(
                f"{folder} was prepared with another tokenizer; give that one, or prepare the "
                "texts with this one."
            )
        shards = self.manifest["shards"]
        counts = [read_array(folder, shard, i, "documents") for i, shard in enumerate(shards)]
        for number, shard in enumerate(shards):
            self._check_size(number, shard)
        # The first document of each shard; the first token and sentence of each document; with
        # the ends.
        self._shards = np.cumsum([0, *map(len, counts)]).tolist()
        ends = np.cumsum(np.concatenate([[[0, 0]], *counts]), axis=0, dtype="int64")
        self._tokens, self._sentences = np.ascontiguousarray(ends.T)
        self._checked = set()
        self._array = functools.lru_cache(MAPPED_FILES)(self._map)

    def __reduce__(self):
        return type(self), (self.folder,)

    def __len__(self):
        """Return the number of documents."""
        return self._shards[-1]

    @property
    def sentence_counts(self):
        """The number of sentences of each document, (documents,) int64."""
        return np.diff(self._sentences)

    @property
    def token_counts(self):
        """The number of tokens of each document, (documents,) int64."""
        return np.diff(self._tokens)

    def document(self, index):
        """Return the ids of a document, (tokens,) int32."""
        return self._slice("ids", self._tokens, index).astype("int32")

    def part(self, index, start, stop):
        """Return the ids of a document from `start` to before `stop`, (tokens,) int32.

        The range is cut to the document. No other token is read.
        """
        return self._slice("ids", self._tokens, index)[start:stop].astype("int32")

    def sentences(self, index):
        """Return the sentences of a document, a list of (tokens,) int32."""
        ids, lengths = self.document(index), self.sentence_lengths(index).tolist()
        ends = itertools.accumulate(lengths)
        return [ids[end - length : end] for end, length in zip(ends, lengths, strict=True)]

    def sentence_lengths(self, index):
        """Return the number of tokens of each sentence of a document, (sentences,) int64.

        No document is read.
        """
        return self._slice("sentences", self._sentences, index).astype("int64")

    def shard(self, index):
        """Return the path of the shard that holds a document."""
        return shard_path(self.folder, self._shard_number(index))

    @property
    def unknown_share(self):
        """The share of tokens that are unknown to the tokenizer."""
        return self.manifest["counts"]["unknown"] / self.manifest["counts"]["tokens"]

    def fingerprint(self):
        """Return the SHA-256 of the manifest, which covers all ids and boundaries as written."""
        return self.manifest["fingerprint"]

    def _slice(self, name, starts, index):
        """Return a document's part of an array of its shard."""
        number = self._shard_number(index)
        first = starts[self._shards[number]]
        return self._array(number, name)[starts[index] - first : starts[index + 1] - first]

    def _shard_number(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"document {index} of {len(self)}")
        return bisect.bisect_right(self._shards, index) - 1

    def _map(self, number, name):
        """Map an array of a shard, and check it the first time."""
        check = (number, name) not in self._checked
        array = read_array(self.folder, self.manifest["shards"][number], number, name, check)
        self._checked.add((number, name))
        return array

    def _check_size(self, number, shard):
        """Raise an InputError for ids that are cut, which are read only later."""
        path = shard_path(self.folder, number)
        size = path.stat().st_size if path.exists() else 0
        if size != shard["bytes"]:
            raise InputError(
                f"{path} has {size} bytes, but {shard['bytes']} by the manifest; {MEND}"
            )
