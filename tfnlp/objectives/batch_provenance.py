"""Provenance of batches: the documents of a corpus in a batch."""

import copy
import dataclasses

# The number of documents or shards that are listed; the others are only counted.
LISTED = 5


class _RecordingCorpus:
    """A corpus that records which documents are read."""

    def __init__(self, corpus):
        self.corpus = corpus
        self.documents = set()

    def __len__(self):
        return len(self.corpus)

    def __getattr__(self, name):
        value = getattr(self.corpus, name)
        if not callable(value):
            return value

        def record(*arguments):  # the first argument of a reading method is the document index
            self.documents.update(map(int, arguments[:1]))
            return value(*arguments)

        return record


def batch_documents(batches, epoch, number):
    """Return the indices of a batch's documents, ascending, by building it once more.

    Its rows alone do not tell them: lanes of a stream, pairs and packed segments read others too.
    """
    batches, corpus = copy.copy(batches), _RecordingCorpus(_corpus_of(batches))
    if hasattr(batches, "corpus"):
        batches.corpus = corpus
    else:
        batches.encodings = batches._rows = dataclasses.replace(batches.encodings, corpus=corpus)
    batches.make(batches.plan(epoch), epoch, number)
    return sorted(corpus.documents)


def describe_documents(batches, epoch, number):
    """Return the documents of a batch, and their shards, as text; see `batch_documents`."""
    documents, corpus = batch_documents(batches, epoch, number), _corpus_of(batches)
    text = f"documents {_first(documents)}"
    if hasattr(corpus, "shard"):
        text += f" of {_first(dict.fromkeys(map(corpus.shard, documents)))}"
    return text


def _corpus_of(batches):
    return batches.corpus if hasattr(batches, "corpus") else batches.encodings.corpus


def _first(values):
    """Return the first of some values as text, and how many more there are."""
    values = list(map(str, values))
    more = f" and {len(values) - LISTED} more" if len(values) > LISTED else ""
    return ", ".join(values[:LISTED]) + more
