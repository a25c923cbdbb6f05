"""Provenance of batches: the documents of a corpus in a batch."""

import copy
import dataclasses

# The number of values that are listed; the others are only counted.
SAID = 5


class _NotedCorpus:
    """A corpus that records which documents are read."""

    def __init__(self, corpus):
        self.corpus = corpus
        self.read = set()

    def __len__(self):
        return len(self.corpus)

    def __getattr__(self, name):
        value = getattr(self.corpus, name)
        if not callable(value):
            return value

        def noted(*arguments):  # the first argument of a reading method is the document index
            self.read.update(map(int, arguments[:1]))
            return value(*arguments)

        return noted


def read_documents(batches, epoch, number):
    """Return the documents of a batch, by building it once more.

    Args:
        batches: the batches of an objective.
        epoch, number: the epoch and the batch number, both counted from 0.

    Returns:
        Their indices in the corpus, ascending.
    """
    again = copy.copy(batches)
    if hasattr(batches, "corpus"):
        again.corpus = noted = _NotedCorpus(batches.corpus)
    else:
        noted = _NotedCorpus(batches.encodings.corpus)
        again.encodings = again._rows = dataclasses.replace(batches.encodings, corpus=noted)
    next(iter(again.epoch(epoch, number)))
    return sorted(noted.read)


def batch_origin(batches, epoch, number):
    """Describe the documents of a batch, and their shards, as text.

    Args:
        batches, epoch, number: as in `read_documents`.
    """
    documents = read_documents(batches, epoch, number)
    corpus = batches.corpus if hasattr(batches, "corpus") else batches.encodings.corpus
    said = f"documents {_some(documents)}"
    if hasattr(corpus, "shard"):
        shards = dict.fromkeys(corpus.shard(i) for i in documents)
        said += f" of {_some(shards)}"
    return said


def _some(values):
    """Return the first of some values as text, and how many more there are."""
    values = list(map(str, values))
    more = f" and {len(values) - SAID} more" if len(values) > SAID else ""
    return ", ".join(values[:SAID]) + more
