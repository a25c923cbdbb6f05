"""A prepared corpus on disk, of which one document at a time is in memory."""

import functools
import os
import pathlib

import numpy as np

from tfnlp.errors import InputError
from tfnlp.text.records import document_from_bytes, unframe
from tfnlp.text.shards import read_index, read_manifest, shard_path, tokenizer_hash

# Files that are open at a time.
OPEN_FILES = 64


class ShardedCorpus:
    """Documents of sentences, tokenised, without special tokens, on disk: as a `Corpus`.

    What is in memory is some 24 bytes a document. A document is one read at its place; threads
    may read at once.

    Args:
        folder: of `tfnlp.text.prepare.prepare_corpus`.
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
        indices = [
            read_index(folder, shard, number)
            for number, shard in enumerate(self.manifest["shards"])
        ]
        # The first document of each shard, and the end.
        self._firsts = np.cumsum([0, *map(len, indices)])
        self._ends, self._tokens, self._sentences = (
            np.concatenate([index[:, column] for index in indices]) for column in range(3)
        )
        self._open = functools.lru_cache(OPEN_FILES)(self._open_shard)

    def __len__(self):
        """The number of documents."""
        return len(self._ends)

    @property
    def sentence_counts(self):
        """(documents,) int64, the sentences of each."""
        return self._sentences

    @property
    def token_counts(self):
        """(documents,) int64, the tokens of each."""
        return self._tokens

    def document(self, index):
        """A document's ids, (tokens,) int32.

        Raises:
            InputError: if its record is damaged.
        """
        return self._read(index)[0]

    def sentences(self, index):
        """A document's sentences, a list of (tokens,) int32.

        Raises:
            InputError: if its record is damaged.
        """
        ids, lengths = self._read(index)
        ends = np.cumsum(lengths)
        return [ids[end - length : end] for end, length in zip(ends, lengths, strict=True)]

    def shard(self, index):
        """The path of the shard that a document is in."""
        number = int(np.searchsorted(self._firsts, index, side="right")) - 1
        return shard_path(self.folder, number, "tfrecord")

    def fingerprint(self):
        """A SHA-256 of all ids and borders, as they were when they were written."""
        return self.manifest["fingerprint"]

    def _open_shard(self, number):
        # Closes when the cache drops it and nobody reads from it any more.
        return open(shard_path(self.folder, number, "tfrecord"), "rb", buffering=0)

    def _read(self, index):
        """The ids and the sentences' tokens of a document."""
        if not 0 <= index < len(self):
            raise IndexError(f"document {index} of {len(self)}")
        shard = int(np.searchsorted(self._firsts, index, side="right")) - 1
        record = int(index - self._firsts[shard])
        begin = int(self._ends[index - 1]) if record else 0
        try:
            file = self._open(shard)  # held, as another thread may have it dropped meanwhile
            content = os.pread(file.fileno(), int(self._ends[index]) - begin, begin)
            ids, lengths = document_from_bytes(unframe(content))
        except (OSError, ValueError) as e:
            raise self._damaged(shard, record, e) from None
        counts = (self._tokens[index], self._sentences[index], self._tokens[index])
        if (len(ids), len(lengths), lengths.sum()) != counts:
            raise self._damaged(shard, record, "it is another document")
        return ids, lengths

    def _damaged(self, shard, record, why):
        return InputError(
            f"{shard_path(self.folder, shard, 'tfrecord')}, record {record} (counted from 0), "
            f"cannot be read ({why}); copy the folder again, or prepare the corpus anew."
        )
