"""Masked language modelling of text pairs with a pair classification.

Next sentence prediction: Devlin et al. 2019, 'BERT', section 3.1, task 2, and appendix A.2.
Sentence order prediction: Lan et al. 2020, 'ALBERT', section 3.1. Both cut documents as in BERT's
own code (create_pretraining_data.py).
"""

import abc
import dataclasses
import hashlib
from typing import ClassVar

import numpy as np

from tfnlp.functional.weighted_losses import cross_entropy
from tfnlp.objectives.batches.masking import MaskedBatches
from tfnlp.objectives.batches.passages import Passages
from tfnlp.objectives.batches.segments import pad
from tfnlp.objectives.batches.special_token_template import SpecialTokenTemplate
from tfnlp.objectives.masked_lm import MaskedLM
from tfnlp.objectives.masked_positions import logits_at_positions
from tfnlp.objectives.objective import Objective, accuracy
from tfnlp.utils.settings import setting

TOKENS, PAIR = "tokens", "pair"


@dataclasses.dataclass(frozen=True)
class PairObjective(Objective):
    """Base class of objectives on text pairs; subclasses define `draw`.

    Args:
        masked_lm: the `MaskedLM` for the tokens of both texts.
        short_share: the share of pairs that are cut from the corpus at a random length.

    Raises:
        InputError: if `short_share` is not in [0, 1].
    """

    masked_lm: MaskedLM = dataclasses.field(default_factory=MaskedLM)
    short_share: float = setting(0.1, "Share of pairs of a random length.", low=0, high=1)

    head: ClassVar[str] = "pretraining"
    loss_name: ClassVar[str]
    score_name: ClassVar[str]
    least_documents: ClassVar[int] = 1

    @property
    def loss_weights(self):
        """The loss weights: the total is the sum of both losses, as in both papers."""
        return {"masked_lm_loss": 1.0, self.loss_name: 1.0}

    def check(self, config, tokenizer):
        """Raise an InputError if the model's config or the tokenizer does not fit."""
        super().check(config, tokenizer)
        self.masked_lm.check(config, tokenizer)

    def trained(self, model):
        """Return the model to fit, with outputs `logits` (B, P, V) and `pair_logits` (B, 2)."""
        return logits_at_positions(model)

    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        """Build the `SentencePairBatches` of a corpus, with labels of tokens and of pairs.

        Raises:
            InputError: if `max_length` leaves no room, no document has two sentences, or there are
                too few documents.
        """
        template = SpecialTokenTemplate.from_tokenizer(tokenizer)
        cutting = self.short_share, seed, self.least_documents
        return SentencePairBatches(
            Passages.from_corpus(corpus, template, max_length, *cutting),
            batch_size,
            self.masked_lm.masking(tokenizer),
            self,
            shuffle=shuffle,
            seed=seed,
            pad_token_id=tokenizer.pad_token_id,
        )

    @abc.abstractmethod
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

    def losses(self, labels, outputs, sample_weight=None):
        """Return both losses of a batch by name, means over masked tokens and over pairs."""
        return {
            **self.masked_lm.losses(labels[TOKENS], outputs, sample_weight),
            self.loss_name: cross_entropy(labels[PAIR], outputs["pair_logits"], sample_weight),
        }

    def scores(self, labels, outputs):
        """Return the numbers of correct and of all predictions, for tokens and for pairs."""
        return {
            **self.masked_lm.scores(labels[TOKENS], outputs),
            self.score_name: accuracy(labels[PAIR], outputs["pair_logits"]),
        }


@dataclasses.dataclass(frozen=True)
class NextSentence(PairObjective):
    """Next sentence prediction: the second text follows the first (label 0) or is random (1).

    Each case has a probability of one half. A random text is from another document, from a random
    place that leaves enough text to match the true continuation, and of a similar length. So
    lengths do not reveal the label. If no other document has enough text, it is shorter.

    Args:
        masked_lm, short_share: as in `PairObjective`.
    """

    loss_name: ClassVar[str] = "next_sentence_loss"
    score_name: ClassVar[str] = "next_sentence_accuracy"
    least_documents: ClassVar[int] = 2

    def draw(self, passages, index, rng):
        document, start, middle, end = passages.halves(index, rng)
        first = passages.text(document, start, middle)
        if rng.random() < 0.5:
            return first, passages.text(document, middle, end), 0
        size = int(passages.ends[end] - passages.ends[middle])
        return first, passages.text(*passages.other_text(document, size, rng)), 1


@dataclasses.dataclass(frozen=True)
class SentenceOrder(PairObjective):
    """Sentence order prediction: the texts are in order (label 0) or swapped (1).

    Each case has a probability of one half. By default spans of words are masked.

    Args:
        masked_lm, short_share: as in `PairObjective`.
    """

    masked_lm: MaskedLM = dataclasses.field(default_factory=lambda: MaskedLM(masked_units="spans"))

    loss_name: ClassVar[str] = "sentence_order_loss"
    score_name: ClassVar[str] = "sentence_order_accuracy"

    def draw(self, passages, index, rng):
        document, start, middle, end = passages.halves(index, rng)
        texts = passages.text(document, start, middle), passages.text(document, middle, end)
        return (*texts, 0) if rng.random() < 0.5 else (*texts[::-1], 1)


def truncate_pair(first, second, size, rng):
    """Truncate two texts to a total number of tokens, and return both.

    As in BERT's own code, tokens are removed one by one from the longer text (the second on a
    tie), from its front or end with equal probability.

    Args:
        first, second: (tokens,) each.
        size: the total number of tokens, 2 or more.
        rng: a `numpy.random.Generator`.
    """
    if len(first) + len(second) <= size:
        return first, second
    kept = min(len(first), max(size - len(second), size - size // 2))

    def random_part(ids, count):
        front = rng.binomial(len(ids) - count, 0.5)
        return ids[front : front + count]

    return random_part(first, kept), random_part(second, size - kept)


class SentencePairBatches(MaskedBatches):
    """Batches of masked text pairs, with labels `tokens` (B, P) and `pair` (B,).

    Pairs are drawn anew in each epoch, by the seed, the epoch and the batch number alone.

    Args:
        passages, batch_size, masking, options: as in `MaskedBatches`.
        objective: the `PairObjective` that draws pairs.
    """

    def __init__(self, passages, batch_size, masking, objective, **options):
        super().__init__(passages, batch_size, masking, **options)
        self.objective = objective

    def masked_batch(self, indices, rng):
        passages, rows, pair_labels = self.encodings, [], []
        for index in indices:
            first, second, label = self.objective.draw(passages, index, rng)
            texts = truncate_pair(first, second, passages.sizes[index], rng)
            rows.append(passages.template.around(*texts))
            pair_labels.append(label)
        inputs = self.to_fixed_length(pad(rows, self.pad_token_id))
        inputs, labels = self.mask(inputs, rng)
        return inputs, {TOKENS: labels, PAIR: np.array(pair_labels, "int32")}

    def fingerprint(self):
        kind = type(self.objective).__name__
        return hashlib.sha256(f"{super().fingerprint()} {kind}".encode()).hexdigest()

    def signature(self):
        import tensorflow as tf

        inputs, ids = super().signature()
        return inputs, {TOKENS: ids, PAIR: tf.TensorSpec((None,), "int32")}
