"""What of a corpus a batch was made from."""

import copy
import dataclasses

# Numbers and names that are said; of more, how many.
SAID = 5


class _NotedCorpus:
    """A corpus that notes which documents are read."""

    def __init__(self, corpus):
        self.corpus = corpus
        self.read = set()

    def __len__(self):
        return len(self.corpus)

    def __getattr__(self, name):
        value = getattr(self.corpus, name)
        if not callable(value):
            return value

        def noted(*arguments):  # of those that read a document its number is the first
            self.read.update(map(int, arguments[:1]))
            return value(*arguments)

        return noted


def read_documents(batches, epoch, number):
    """The documents that a batch is made from, which is made once more for that.

    Args:
        batches: those of an objective.
        epoch, number: of the batch; both counted from 0.

    Returns:
        Their numbers in the corpus, ascending.
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
    """The documents that a batch is made from, and their shards, in words.

    Args:
        batches, epoch, number: as `read_documents` takes them.
    """
    documents = read_documents(batches, epoch, number)
    corpus = batches.corpus if hasattr(batches, "corpus") else batches.encodings.corpus
    said = f"documents {_some(documents)}"
    if hasattr(corpus, "shard"):
        shards = dict.fromkeys(corpus.shard(i) for i in documents)
        said += f" of {_some(shards)}"
    return said


def _some(values):
    """The first of some values, and how many more there are."""
    values = list(map(str, values))
    more = f" and {len(values) - SAID} more" if len(values) > SAID else ""
    return ", ".join(values[:SAID]) + more
