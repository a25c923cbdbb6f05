"""Masked language modelling: tokens are hidden, and predicted from what is around them.

Devlin et al. 2019, 'BERT', section 3.1, task 1, with the tokens drawn anew in each epoch as in
Liu et al. 2019, 'RoBERTa', section 4.1.
"""

import dataclasses
from typing import ClassVar

from keras import ops

from tfnlp.errors import InputError
from tfnlp.losses import token_cross_entropy
from tfnlp.models.build import family_name
from tfnlp.objectives.frame import Frame
from tfnlp.objectives.masking import MaskedBatches, Masking
from tfnlp.objectives.positions import logits_at_positions
from tfnlp.objectives.segments import Segments
from tfnlp.text.batches import IGNORED

# What can be hidden together.
HIDDEN = ("tokens", "words", "spans")


@dataclasses.dataclass(frozen=True)
class MaskedLM:
    """The token that stood at each hidden position; a task as `tfnlp.tasks` describes them too.

    Args:
        hide: "tokens"; "words", all tokens of one together; or "spans" of several words (Lan et
            al. 2020, 'ALBERT', section 3.1).
        share: of each text's tokens, or words, that are to be predicted; one at least.
        masked: the share of those that [MASK] stands for.
        replaced: the share of those that a random token stands for.
        longest_span: the most words of a span.
        packed: whether a text has as many sentences of a document as it has room for, or one.

    Raises:
        InputError: for an unknown `hide`.
    """

    hide: str = "tokens"
    share: float = 0.15
    masked: float = 0.8
    replaced: float = 0.1
    longest_span: int = 3
    packed: bool = True

    head: ClassVar[str] = "masked_lm"
    num_classes: ClassVar[None] = None
    label_names: ClassVar[None] = None
    settings: ClassVar[None] = None
    outputs: ClassVar[tuple] = ("logits",)
    loss_name: ClassVar[str] = "masked_lm_loss"
    loss_weights: ClassVar[dict] = {"masked_lm_loss": 1.0}

    def __post_init__(self):
        if self.hide not in HIDDEN:
            raise InputError(f"hide={self.hide!r} is none of {', '.join(HIDDEN)}.")

    def check(self, config, tokenizer):
        """Raises an InputError where a model's config or its tokenizer does not fit."""
        if config.language_model != "masked_lm":
            raise InputError(
                f"The family {family_name(config)!r} predicts no hidden tokens; pretrain it as "
                f"{config.language_model!r}, or take a family with masked tokens, such as BERT."
            )
        self.masking(tokenizer)

    def masking(self, tokenizer):
        """The `Masking` of a tokenizer's texts; an InputError without a token that masks."""
        return Masking.of(
            tokenizer,
            self.share,
            self.hide != "tokens",
            masked=self.masked,
            replaced=self.replaced,
            longest_span=self.longest_span if self.hide == "spans" else 1,
        )

    def trained(self, model):
        """What is fitted: from a batch's inputs to `logits` (B, P, V)."""
        return logits_at_positions(model)

    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        """The batches of a corpus, with labels (B, P).

        Args:
            corpus: see `tfnlp.objectives.Corpus`.
            tokenizer: of its ids.
            batch_size: B.
            max_length: the most ids of a text, special tokens counted.
            seed: of the order and of what is hidden.
            shuffle: whether each epoch has its own order.

        Returns:
            `MaskedBatches`.

        Raises:
            InputError: if `max_length` leaves no room, or a span is longer than every text.
        """
        segments = Segments.of(corpus, Frame.of(tokenizer), max_length, self.packed)
        self.check_spans(int(segments.sizes.max()))
        return MaskedBatches(
            segments,
            batch_size,
            self.masking(tokenizer),
            shuffle=shuffle,
            seed=seed,
            pad_token_id=tokenizer.pad_token_id,
        )

    def check_spans(self, longest):
        """Raises an InputError for spans longer than the longest text, of so many tokens."""
        if self.hide == "spans" and self.longest_span > longest:
            raise InputError(
                f"longest_span={self.longest_span} is more than the {longest} tokens of the "
                "longest text; give a lower one."
            )

    def loss(self, labels, outputs, sample_weight=None):
        """The mean cross-entropy of labels (B, P) and logits (B, P, V); -100 counts nothing."""
        return token_cross_entropy(labels, outputs["logits"], sample_weight)

    def losses(self, labels, outputs, sample_weight=None):
        """The one loss of a batch, by its name."""
        return {"masked_lm_loss": self.loss(labels, outputs, sample_weight)}

    def scores(self, labels, outputs):
        """How many hidden tokens are found, and how many there are: `masked_accuracy`."""
        return {"masked_accuracy": count_hits(labels, outputs["logits"])}


def count_hits(labels, logits):
    """The labels (...) that have the largest logit, and the labels but for -100: two scalars."""
    labels = ops.convert_to_tensor(labels)
    hits = ops.equal(ops.cast(ops.argmax(logits, -1), labels.dtype), labels)
    real = ops.not_equal(labels, IGNORED)
    return ops.sum(ops.cast(hits & real, "float32")), ops.sum(ops.cast(real, "float32"))
