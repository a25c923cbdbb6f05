"""Documents one after another as one stream of tokens, of which batches read segments."""

import dataclasses
import functools
import hashlib
import math

import numpy as np

from tfnlp.errors import InputError
from tfnlp.text.batches import LengthBatches
from tfnlp.text.special_tokens import end_token_id

# Documents that are kept, of those that a lane reads from: the one it is in, and one at random.
KEPT = 4


class TokenStream:
    """The tokens of documents in some order, an end token after each, read from any place.

    Args:
        corpus: a `Corpus`, or one on disk.
        order: (documents,) integers; those without a token are left out.
        end_token_id: None for none.
        lanes: how many places it is read from in turn; a few documents of each are kept.
    """

    def __init__(self, corpus, order, end_token_id=None, lanes=1):
        counts = np.asarray(corpus.token_counts)[order]
        self.order = np.asarray(order)[counts > 0]
        self.corpus = corpus
        self.end_token_id = end_token_id
        self._stops = np.cumsum(counts[counts > 0] + (end_token_id is not None))
        self._document = functools.lru_cache(KEPT * lanes)(self._read_document)

    def __len__(self):
        """The number of tokens."""
        return int(self._stops[-1])

    def count_tokens(self, vocabulary_size):
        """Return how often the stream holds each id, (vocabulary_size,) int64."""
        counts = np.zeros(vocabulary_size, "int64")
        for _, ids, _ in self._documents(0, len(self)):
            np.add.at(counts, ids, 1)
        return counts

    def read(self, start, stop):
        """The ids from one place to before another, (stop - start,) int32."""
        parts = [np.zeros(0, "int32")]
        for begin, ids, _ in self._documents(start, stop):
            parts.append(ids[max(0, start - begin) : stop - begin])
        return np.concatenate(parts)

    def borders(self, start, stop):
        """The places after `start` and before `stop` where a sentence begins, ascending."""
        found = [begin + starts for begin, _, starts in self._documents(start, stop)]
        found = np.concatenate(found)
        return found[(found > start) & (found < stop)]

    def sentence(self, place):
        """Where the sentence of a place begins, and where the next one does."""
        ((begin, ids, starts),) = self._documents(place, place + 1)
        bounds = np.append(starts, len(ids)) + begin
        i = np.searchsorted(bounds, place, "right")
        return int(bounds[i - 1]), int(bounds[i])

    def _documents(self, start, stop):
        """Yields where each document of a stretch begins, its ids and its sentences' starts."""
        number = int(np.searchsorted(self._stops, start, "right"))
        while start < stop:
            begin = int(self._stops[number - 1]) if number else 0
            yield begin, *self._document(int(self.order[number]))
            start, number = int(self._stops[number]), number + 1

    def _read_document(self, index):
        """A document's ids with its end, and where in them its sentences begin."""
        sentences = [ids for ids in self.corpus.sentences(index) if len(ids)]
        starts = np.cumsum([0, *map(len, sentences[:-1])])
        end = [] if self.end_token_id is None else [[self.end_token_id]]
        return np.concatenate([*sentences, *end]).astype("int32"), starts


@dataclasses.dataclass(frozen=True)
class Lane:
    """A stretch of a stream that is read from its first token on, or backwards from its last.

    Args:
        stream: a `TokenStream`.
        start, size: the stretch.
        backward: whether its last token is the first that is read.
    """

    stream: TokenStream
    start: int
    size: int
    backward: bool = False

    def read(self, begin, end):
        """The ids of places `begin` to before `end` in the order of reading, int32."""
        stop = self.start + self.size
        if self.backward:
            return self.stream.read(stop - end, stop - begin)[::-1]
        return self.stream.read(self.start + begin, self.start + end)

    def borders(self, begin, end):
        """The places between, where a sentence is read from its one end or the other."""
        stop = self.start + self.size
        if self.backward:
            return (stop - self.stream.borders(stop - end, stop - begin))[::-1]
        return self.stream.borders(self.start + begin, self.start + end) - self.start

    def sentence_start(self, place):
        """Where the reading of the sentence of a place begins, 0 at least."""
        stop = self.start + self.size
        if self.backward:
            return max(0, stop - self.stream.sentence(stop - 1 - place)[1])
        return max(0, self.stream.sentence(self.start + place)[0] - self.start)


class StreamBatches:
    """Batches that read a stream of a corpus, whose documents have a new order in each epoch.

    They are what `tfnlp.training.fit` asks of `LengthBatches`. What an epoch's batches are depends
    on the seed and the epoch alone, and any of them is made without those before it. A subclass
    sets `rows`, the examples of an epoch, and has `epoch`, `signature` and `settings`.

    Args:
        corpus: a `Corpus`, or one on disk.
        tokenizer: see `tfnlp.text`.
        batch_size: B.
        max_length: L.
        seed: of the order, and what else is drawn.
        shuffle: whether the documents' order is drawn; else it is the corpus' own.
    """

    def __init__(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        self.corpus = corpus
        self.batch_size = batch_size
        self.max_length = max_length
        self.seed = seed
        self.shuffle = shuffle
        self.pad_token_id = tokenizer.pad_token_id
        self.end_token_id = end_token_id(tokenizer)
        self.tokens = len(self.stream(0))

    @property
    def lengths(self):
        """The tokens of each example of an epoch."""
        return np.full(self.rows, self.max_length)

    def __len__(self):
        """The number of batches in an epoch."""
        return math.ceil(self.rows / self.batch_size)

    # The same of all batches that have these methods.
    dataset = LengthBatches.dataset

    def stream(self, epoch):
        """The `TokenStream` of an epoch."""
        documents = np.arange(len(self.corpus))
        if self.shuffle:
            documents = np.random.default_rng([self.seed, epoch]).permutation(documents)
        return TokenStream(self.corpus, documents, self.end_token_id, self.batch_size)

    def window_order(self, epoch):
        """The order of an epoch's examples, where none goes on from another: (rows,) integers."""
        # Not the generator of the documents' order, nor that of what a batch draws.
        rng = np.random.default_rng([self.seed, epoch, 0, 1])
        return rng.permutation(self.rows) if self.shuffle else np.arange(self.rows)

    def fingerprint(self):
        """A SHA-256 of all that decides the batches of every epoch."""
        settings = [self.batch_size, self.max_length, self.seed, self.shuffle]
        settings += [self.pad_token_id, self.end_token_id, *self.settings()]
        text = f"{type(self).__name__} {self.corpus.fingerprint()} {settings}"
        return hashlib.sha256(text.encode()).hexdigest()

    def check_tokens(self, needed, what):
        """Raises an InputError unless the stream has so many tokens."""
        if self.tokens < needed:
            raise InputError(
                f"There are {self.tokens} tokens, but {what} takes {needed} at least; give "
                "more text, a smaller batch_size or a smaller max_length."
            )


def as_inputs(token_ids, segment_ids=None):
    """Whole rows of ids (B, L) as a model's inputs."""
    segments = np.zeros_like(token_ids) if segment_ids is None else segment_ids
    return {
        "token_ids": token_ids,
        "segment_ids": segments,
        "padding_mask": np.ones_like(token_ids),
    }
