"""Streams of concatenated documents, and batches of their segments."""

import abc
import dataclasses
import functools
import hashlib
import math

import numpy as np

from tfnlp.objectives.batches.lane_memory import lane_inputs
from tfnlp.text.batching.epoch_batches import EpochBatches
from tfnlp.text.tokenizers.special_tokens import end_token_id
from tfnlp.utils.errors import InputError

# Cached documents for each lane: the current one and random ones.
KEPT = 4


class TokenStream:
    """Concatenated documents in a given order, each with an end token, with random access.

    Args:
        corpus: a `Corpus`, or one on disk.
        order: (documents,) integers; documents without a token are left out.
        end_token_id: the id of the end token, or None for no end tokens.
        lanes: the number of places that are read in turn; a few documents are cached for each.
    """

    def __init__(self, corpus, order, end_token_id=None, lanes=1):
        counts = np.asarray(corpus.token_counts)[order]
        self.order = np.asarray(order)[counts > 0]
        self.corpus = corpus
        self.end_token_id = end_token_id
        self._stops = np.cumsum(counts[counts > 0] + (end_token_id is not None))
        self._document = functools.lru_cache(KEPT * lanes)(self._read_document)

    def __len__(self):
        """Return the number of tokens."""
        return int(self._stops[-1])

    def count_tokens(self, vocabulary_size):
        """Return the count of each id in the stream, (vocabulary_size,) int64."""
        counts = np.zeros(vocabulary_size, "int64")
        for _, ids, _ in self._documents(0, len(self)):
            np.add.at(counts, ids, 1)
        return counts

    def read(self, start, stop):
        """Return the ids from `start` to before `stop`, (stop - start,) int32."""
        parts = [np.zeros(0, "int32")]
        for begin, ids, _ in self._documents(start, stop):
            parts.append(ids[max(0, start - begin) : stop - begin])
        return np.concatenate(parts)

    def document_starts(self, start, stop):
        """Return where documents begin strictly between two positions: at the end token before."""
        shift = self.end_token_id is not None
        first = np.searchsorted(self._stops, start + shift, "right")
        return self._stops[first : np.searchsorted(self._stops, stop + shift)] - shift

    def borders(self, start, stop):
        """Return the sentence starts strictly between `start` and `stop`, ascending."""
        starts_in_range = [begin + starts for begin, _, starts in self._documents(start, stop)]
        starts_in_range = np.concatenate(starts_in_range)
        return starts_in_range[(starts_in_range > start) & (starts_in_range < stop)]

    def sentence(self, place):
        """Return the start of the sentence at a position, and that of the next one."""
        ((begin, ids, starts),) = self._documents(place, place + 1)
        bounds = np.append(starts, len(ids)) + begin
        i = np.searchsorted(bounds, place, "right")
        return int(bounds[i - 1]), int(bounds[i])

    def _documents(self, start, stop):
        """Yield the start, the ids and the sentence starts of each document in a range."""
        number = int(np.searchsorted(self._stops, start, "right"))
        while start < stop:
            begin = int(self._stops[number - 1]) if number else 0
            yield begin, *self._document(int(self.order[number]))
            start, number = int(self._stops[number]), number + 1

    def _read_document(self, index):
        """Return a document's ids with its end token, and its sentence starts."""
        sentences = [ids for ids in self.corpus.sentences(index) if len(ids)]
        starts = np.cumsum([0, *map(len, sentences[:-1])])
        end = [] if self.end_token_id is None else [[self.end_token_id]]
        return np.concatenate([*sentences, *end]).astype("int32"), starts


@dataclasses.dataclass(frozen=True)
class Lane:
    """A range of a stream, read forwards or backwards.

    Args:
        stream: a `TokenStream`.
        start, size: the range.
        backward: whether to read from the last token to the first.
    """

    stream: TokenStream
    start: int
    size: int
    backward: bool = False

    @property
    def _stop(self):
        return self.start + self.size

    def read(self, begin, end):
        """Return the ids from `begin` to before `end` in reading order, int32."""
        if self.backward:
            return self.stream.read(self._stop - end, self._stop - begin)[::-1]
        return self.stream.read(self.start + begin, self.start + end)

    def borders(self, begin, end):
        """Return the sentence boundaries strictly between `begin` and `end`, in reading order."""
        if self.backward:
            return (self._stop - self.stream.borders(self._stop - end, self._stop - begin))[::-1]
        return self.stream.borders(self.start + begin, self.start + end) - self.start

    def sentence_start(self, place):
        """Return where the sentence at `place` begins in reading order, at least 0."""
        if self.backward:
            return max(0, self._stop - self.stream.sentence(self._stop - 1 - place)[1])
        return max(0, self.stream.sentence(self.start + place)[0] - self.start)


class StreamBatches(EpochBatches):
    """Batches from a stream of a corpus, with a new document order in each epoch.

    With memory row b of each batch continues lane b of the stream; without, segments are examples
    in random order. A subclass sets `rows`, the number of examples of an epoch, and `settings`,
    those beyond the arguments here, and defines `batch`.

    Args:
        corpus: a `Corpus`, or one on disk.
        tokenizer: see `tfnlp.text`.
        batch_size: B.
        max_length: L.
        seed: the seed of the order and all other draws.
        shuffle: whether the document order is random; else it is that of the corpus.
        memory: whether the stream is cut into lanes.
    """

    def __init__(
        self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True, memory=False
    ):
        self.corpus = corpus
        self.batch_size = batch_size
        self.max_length = max_length
        self.seed = seed
        self.shuffle = shuffle
        self.memory = memory
        self.pad_token_id = tokenizer.pad_token_id
        self.end_token_id = end_token_id(tokenizer)
        self.tokens = len(self.stream(0))

    @property
    def lengths(self):
        """The number of tokens of each example of an epoch."""
        return np.full(self.rows, self.max_length)

    def __len__(self):
        """Return the number of batches in an epoch."""
        return math.ceil(self.rows / self.batch_size)

    def stream(self, epoch):
        """Return the `TokenStream` of an epoch."""
        documents = np.arange(len(self.corpus))
        if self.shuffle:
            documents = np.random.default_rng([self.seed, epoch]).permutation(documents)
        return TokenStream(self.corpus, documents, self.end_token_id, self.batch_size)

    def plan(self, epoch):
        """Return the `TokenStream` of an epoch, and the order of its examples."""
        stream, order = self.stream(epoch), np.arange(self.rows)
        if self.shuffle and not self.memory:
            # Differs from the seeds of the document order and of the draws of a batch.
            order = np.random.default_rng([self.seed, epoch, 0, 1]).permutation(order)
        return stream, order

    def make(self, plan, epoch, number):
        stream, order = plan
        examples = order[number * self.batch_size : (number + 1) * self.batch_size]
        rng = np.random.default_rng([self.seed, epoch, number])
        inputs, labels = self.batch(stream, examples, rng)
        if self.memory:
            inputs |= lane_inputs(len(labels), number > 0)
        return inputs, labels

    @abc.abstractmethod
    def batch(self, stream, examples, rng):
        """Return the inputs and labels of some examples, by their numbers.

        With memory example n is segment n // B of lane n % B.
        """

    def signature(self):
        """Return the `tf.TensorSpec`s of a batch, from the first one."""
        import tensorflow as tf

        def spec(x):
            return tf.TensorSpec((None, *x.shape[1:]), x.dtype)

        return tf.nest.map_structure(spec, self.make(self.plan(0), 0, 0))

    def fingerprint(self):
        """Return a SHA-256 of all that determines the batches of every epoch."""
        settings = [self.batch_size, self.max_length, self.seed, self.shuffle, self.memory]
        settings += [self.pad_token_id, self.end_token_id, *self.settings]
        text = f"{type(self).__name__} {self.corpus.fingerprint()} {settings}"
        return hashlib.sha256(text.encode()).hexdigest()

    def check_tokens(self, needed, part):
        """Raise an InputError if the stream has fewer than `needed` tokens."""
        if self.tokens < needed:
            raise InputError(
                f"There are {self.tokens} tokens, but {part} takes {needed} at least; give "
                "more text, a smaller batch_size or a smaller max_length."
            )


def as_inputs(token_ids, segment_ids=None):
    """Return rows of ids (B, L) without padding as model inputs."""
    segments = np.zeros_like(token_ids) if segment_ids is None else segment_ids
    return {
        "token_ids": token_ids,
        "segment_ids": segments,
        "padding_mask": np.ones_like(token_ids),
    }
