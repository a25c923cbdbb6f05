"""Masked language modelling of text pairs with a pair classification.

Devlin et al. 2019, 'BERT', appendix A.2, and Lan et al. 2020, 'ALBERT', section 3.1; both cut
documents as in BERT's own code (create_pretraining_data.py).
"""

import dataclasses
import hashlib
from typing import ClassVar

import numpy as np
import tensorflow as tf

from tfnlp.configs import check_head
from tfnlp.objectives.masked_lm import MaskedLM, count_hits
from tfnlp.objectives.masked_positions import logits_at_positions
from tfnlp.objectives.masking import MaskedBatches
from tfnlp.objectives.objective import Objective
from tfnlp.objectives.passages import Passages
from tfnlp.objectives.segments import pad
from tfnlp.objectives.special_token_template import SpecialTokenTemplate
from tfnlp.utils.errors import InputError
from tfnlp.weighted_losses import cross_entropy

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
        """Build the `SentencePairBatches` of a corpus, with labels of tokens and of pairs.

        Raises:
            InputError: if `max_length` leaves no room, `longest_span` exceeds the longest text, no
                document has two sentences, or there are too few documents.
        """
        template = SpecialTokenTemplate.from_tokenizer(tokenizer)
        passages = Passages.from_corpus(corpus, template, max_length, self.short_share, seed)
        self.check_documents(passages)
        self.masked_lm.check_spans(int(passages.sizes.max()))
        return SentencePairBatches(
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
    return _random_part(first, kept, rng), _random_part(second, size - kept, rng)


def _random_part(ids, size, rng):
    """Return `size` ids after dropping tokens from either end with equal probability."""
    front = rng.binomial(len(ids) - size, 0.5)
    return ids[front : front + size]


class SentencePairBatches(MaskedBatches):
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
        for number, indices in enumerate(self.batch_indices(epoch)[skip:], skip):
            rng = np.random.default_rng([self.seed, epoch, number])
            rows, pair_labels = [], []
            for index in indices:
                first, second, label = self.draw(passages, index, rng)
                texts = truncate_pair(first, second, passages.sizes[index], rng)
                rows.append(passages.template.around(*texts))
                pair_labels.append(label)
            inputs = self.to_fixed_length(pad(rows, self.pad_token_id))
            inputs, labels = self.hide(inputs, rng)
            yield inputs, {TOKENS: labels, PAIR: np.array(pair_labels, "int32")}

    def fingerprint(self):
        return hashlib.sha256(f"{super().fingerprint()} {self.kind}".encode()).hexdigest()

    def signature(self):
        inputs, ids = super().signature()
        return inputs, {TOKENS: ids, PAIR: tf.TensorSpec((None,), "int32")}
