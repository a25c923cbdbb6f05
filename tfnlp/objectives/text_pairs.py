"""Masked language modelling of text pairs with a pair classification.

Devlin et al. 2019, 'BERT', appendix A.2, and Lan et al. 2020, 'ALBERT', section 3.1; both cut
documents as in BERT's own code (create_pretraining_data.py).
"""

import array
import dataclasses
import functools
import hashlib
from typing import ClassVar

import numpy as np
from absl import logging

from tfnlp.configs import check_head
from tfnlp.objectives.masked_lm import MaskedLM, count_hits
from tfnlp.objectives.masked_positions import logits_at_positions
from tfnlp.objectives.masking import MaskedBatches
from tfnlp.objectives.segments import pad
from tfnlp.objectives.special_token_template import Frame
from tfnlp.utils.errors import InputError
from tfnlp.weighted_losses import cross_entropy

TOKENS, PAIR = "tokens", "pair"
# The number of texts to draw; the nearest in length is taken.
TRIES = 16


@dataclasses.dataclass(frozen=True)
class PairObjective:
    """Base class of objectives on text pairs; subclasses define `draw`.

    Args:
        masked_lm: the `MaskedLM` for the tokens of both texts.
        short_share: the share of pairs that are cut from the corpus at a random length.

    Raises:
        InputError: if `short_share` is not in [0, 1].
    """

    masked_lm: MaskedLM = dataclasses.field(default_factory=MaskedLM)
    short_share: float = 0.1

    head: ClassVar[str] = "pretraining"
    loss_name: ClassVar[str]
    score_name: ClassVar[str]

    def __post_init__(self):
        if not 0 <= self.short_share <= 1:
            raise InputError(f"short_share={self.short_share} must be a share from 0 to 1.")

    @property
    def loss_weights(self):
        """The loss weights: the total is the sum of both losses, as in both papers."""
        return {"masked_lm_loss": 1.0, self.loss_name: 1.0}

    def check(self, config, tokenizer):
        """Raise an InputError if the model's config or the tokenizer does not fit."""
        check_head(config, self.head)
        self.masked_lm.check(config, tokenizer)

    def trained(self, model):
        """Return the model to fit, with outputs `logits` (B, P, V) and `pair_logits` (B, 2)."""
        return logits_at_positions(model)

    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        """Build the batches of a corpus, with labels `tokens` (B, P) and `pair` (B,).

        Args:
            corpus, tokenizer, batch_size, max_length, shuffle: as in `MaskedLM.batches`.
            seed: the seed of the document cuts, the order, the pairs and the masking.

        Returns:
            `PairBatches`.

        Raises:
            InputError: if `max_length` leaves no room, `longest_span` exceeds the longest text, no
                document has two sentences, or there are too few documents.
        """
        frame = Frame.of(tokenizer)
        passages = Passages.of(corpus, frame, max_length, self.short_share, seed)
        self.check_documents(passages)
        self.masked_lm.check_spans(int(passages.sizes.max()))
        return PairBatches(
            passages,
            batch_size,
            self.masked_lm.masking(tokenizer),
            self.draw,
            type(self).__name__,
            shuffle=shuffle,
            seed=seed,
            pad_token_id=tokenizer.pad_token_id,
        )

    def check_documents(self, passages):
        """Raise an InputError if pairs cannot be drawn from these documents."""

    def draw(self, passages, index, rng):
        """Draw a pair of texts.

        Args:
            passages: the `Passages`.
            index: the index of the passage.
            rng: a `numpy.random.Generator`.

        Returns:
            The ids of both texts, (tokens,) int32 each, and the label: 0 where the second
            follows the first, else 1.
        """
        raise NotImplementedError

    def losses(self, labels, outputs, sample_weight=None):
        """Return both losses of a batch by name, means over masked tokens and over pairs."""
        return {
            "masked_lm_loss": self.masked_lm.loss(labels[TOKENS], outputs, sample_weight),
            self.loss_name: cross_entropy(labels[PAIR], outputs["pair_logits"], sample_weight),
        }

    def scores(self, labels, outputs):
        """Return the numbers of correct and of all predictions, for tokens and for pairs."""
        return {
            **self.masked_lm.scores(labels[TOKENS], outputs),
            self.score_name: count_hits(labels[PAIR], outputs["pair_logits"]),
        }


@dataclasses.dataclass(frozen=True, eq=False)
class Passages:
    """Passages of two or more sentences of a document, to be split into pairs.

    They take 8 bytes a sentence, 8 a document and 20 a passage. They can replace the encodings of
    `tfnlp.text.LengthBatches`.

    Args:
        corpus: see `tfnlp.objectives.Corpus`.
        frame: the `Frame` of two texts.
        ends: (sentences + 1,) int64, cumulative token counts over all non-empty sentences of the
            corpus.
        document_starts: (documents + 1,) int64, the first such sentence of each document.
        documents: (n,) int32, the document of each passage.
        starts: (n,) int64, its first sentence.
        counts: (n,) int32, its sentences.
        sizes: (n,) int32, the maximum number of tokens of its pair.
    """

    corpus: object
    frame: object
    ends: np.ndarray
    document_starts: np.ndarray
    documents: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    sizes: np.ndarray

    choices = None  # as in `Encodings`

    @classmethod
    def of(cls, corpus, frame, max_length, short_share, seed):
        """Cut all documents into passages.

        A passage takes sentences up to the maximum length of a pair, or, in `short_share` of
        cases, up to a random length of at least 2. It ends with its document. Single-sentence
        passages are left out: BERT's own code pairs them with another document, so that more than
        half of all pairs are random.

        Raises:
            InputError: if `max_length` leaves no room for two tokens, or no document has two
                sentences.
        """
        room = max_length - frame.pair_size
        if room < 2:
            raise InputError(
                f"max_length={max_length} leaves no room for two texts beside the "
                f"{frame.pair_size} special tokens; give at least {frame.pair_size + 2}."
            )
        rng = np.random.default_rng(seed)
        sentence_sizes, document_starts = array.array("i", [0]), array.array("q", [0])
        documents, counts, sizes = (array.array("i") for _ in range(3))
        starts = array.array("q")
        for document in range(len(corpus)):
            own = [size for size in corpus.sentence_lengths(document).tolist() if size]
            start = 0
            for count in passage_counts(own, room, short_share, rng):
                documents.append(document)
                starts.append(document_starts[-1] + start)
                counts.append(count)
                sizes.append(min(room, sum(own[start : start + count])))
                start += count
            sentence_sizes.extend(own)
            document_starts.append(document_starts[-1] + len(own))
        if not documents:
            raise InputError(
                "No document of the corpus has two sentences, so that there are no pairs of "
                "them; keep the borders of documents, and one sentence a line, or pretrain by "
                "masked tokens alone."
            )
        alone = np.count_nonzero(np.diff(document_starts) == 1)
        if alone:
            logging.warning(
                "%d of %d documents have one sentence: no pairs are of them.", alone, len(corpus)
            )
        columns = map(np.asarray, (document_starts, documents, starts, counts, sizes))
        return cls(corpus, frame, np.cumsum(sentence_sizes, dtype="int64"), *columns)

    def __len__(self):
        return len(self.sizes)

    @property
    def lengths(self):
        """The maximum number of ids of each pair, including special tokens: (n,) int64."""
        return self.sizes.astype("int64") + self.frame.pair_size

    def text(self, document, start, end):
        """Return the ids of sentences of a document, with sentence indices of the whole corpus."""
        first = self.ends[self.document_starts[document]]
        return self.corpus.part(document, self.ends[start] - first, self.ends[end] - first)

    def halves(self, index, rng):
        """Split a passage at a random sentence boundary, and return its start, split and end."""
        start = int(self.starts[index])
        end = start + int(self.counts[index])
        return start, int(rng.integers(start + 1, end)), end

    @functools.cached_property
    def _by_size(self):
        """The documents by increasing size, and their token counts, (documents,) int64 each."""
        sizes = np.diff(self.ends[self.document_starts])
        order = np.argsort(sizes, kind="stable")
        return order, sizes[order]

    def other_text(self, document, size, rng):
        """Draw whole sentences of another document with about `size` tokens.

        The nearest in length of up to `TRIES` draws is taken. Each starts where at least as many
        tokens are left in its document, or at the start of a document if no other one has as many.

        Args:
            document: the document to avoid.
            size: the number of tokens, 1 or more.
            rng: a `numpy.random.Generator`.

        Returns:
            The document, its first sentence and the one after its last, as arguments of `text`.
        """
        order, sizes = self._by_size
        least = np.searchsorted(sizes, size)
        if np.all(order[least:] == document):
            least = np.searchsorted(sizes, 1)
        others = np.array([document])
        while np.all(others == document):
            others = order[rng.integers(least, len(order), TRIES)]
        others = others[others != document]
        first, stop = self.document_starts[others], self.document_starts[others + 1]
        last = np.searchsorted(self.ends, self.ends[stop] - size, "right")
        starts = rng.integers(first, np.maximum(last, first + 1))
        ends = np.minimum(np.searchsorted(self.ends, self.ends[starts] + size), stop)
        nearest = np.argmin(np.abs(self.ends[ends] - self.ends[starts] - size))
        return tuple(int(x[nearest]) for x in (others, starts, ends))

    def fingerprint(self):
        """Return a SHA-256 of all passages."""
        frame = (self.frame.pair, self.frame.pair_segments)
        digest = hashlib.sha256(f"{self.corpus.fingerprint()} {frame}".encode())
        for index in (self.documents, self.starts, self.counts, self.sizes):
            digest.update(np.ascontiguousarray(index))
        return digest.hexdigest()


def passage_counts(sizes, room, short_share, rng):
    """Return the number of sentences of each passage of a document, from its sentence sizes."""
    counts, start = [], 0
    while len(sizes) - start > 1:
        short = rng.random() < short_share
        target = rng.integers(2, room + 1) if short else room
        end, tokens = start, 0
        while end < len(sizes) and (tokens < target or end - start < 2):
            tokens += sizes[end]
            end += 1
        if len(sizes) - end == 1:  # do not leave a last sentence alone
            end += 1
        counts.append(end - start)
        start = end
    return counts


def truncate_pair(first, second, size, rng):
    """Truncate two texts to a total number of tokens.

    As in BERT's own code, tokens are removed one by one from the longer text (the second on a
    tie), from its front or end with equal probability.

    Args:
        first, second: (tokens,) each.
        size: the total number of tokens, 2 or more.
        rng: a `numpy.random.Generator`.

    Returns:
        Both texts.
    """
    if len(first) + len(second) <= size:
        return first, second
    kept = min(len(first), max(size - len(second), size - size // 2))
    return _cut(first, kept, rng), _cut(second, size - kept, rng)


def _cut(ids, size, rng):
    front = rng.binomial(len(ids) - size, 0.5)
    return ids[front : front + size]


class PairBatches(MaskedBatches):
    """Batches of masked text pairs, with labels `tokens` (B, P) and `pair` (B,).

    Pairs are drawn anew in each epoch, by the seed, the epoch and the batch number alone.

    Args:
        passages, batch_size, masking, options: as in `MaskedBatches`.
        draw: a function that returns a pair, as in `PairObjective.draw`.
        kind: the name of the objective, for the fingerprint.
    """

    def __init__(self, passages, batch_size, masking, draw, kind, **options):
        super().__init__(passages, batch_size, masking, **options)
        self.draw = draw
        self.kind = kind

    def epoch(self, epoch=0, skip=0):
        passages = self._rows
        for number, indices in enumerate(self.order(epoch)[skip:], skip):
            rng = np.random.default_rng([self.seed, epoch, number])
            rows, pair_labels = [], []
            for index in indices:
                first, second, label = self.draw(passages, index, rng)
                texts = truncate_pair(first, second, passages.sizes[index], rng)
                rows.append(passages.frame.around(*texts))
                pair_labels.append(label)
            inputs = self.to_fixed_length(pad(rows, self.pad_token_id))
            inputs, labels = self.hide(inputs, rng)
            yield inputs, {TOKENS: labels, PAIR: np.array(pair_labels, "int32")}

    def fingerprint(self):
        return hashlib.sha256(f"{super().fingerprint()} {self.kind}".encode()).hexdigest()

    def signature(self):
        import tensorflow as tf

        inputs, ids = super().signature()
        return inputs, {TOKENS: ids, PAIR: tf.TensorSpec((None,), "int32")}
