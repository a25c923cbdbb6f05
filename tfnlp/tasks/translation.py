"""Texts into another language, or any texts into others."""

import dataclasses
from typing import ClassVar

import numpy as np
from keras import ops

from tfnlp.errors import InputError
from tfnlp.losses import correct, log_likelihood, token_cross_entropy
from tfnlp.tasks.pair_batches import PairBatches
from tfnlp.text.batches import IGNORED
from tfnlp.text.special_tokens import with_target


@dataclasses.dataclass(frozen=True)
class Translation:
    """Each token of the target from the source and the tokens before it (Sutskever et al., eq. 1).

    Args:
        label_smoothing: e of `tfnlp.losses.token_cross_entropy` (Vaswani et al. 2017, section
            5.4); 0 for none.

    Raises:
        InputError: for a label smoothing out of [0, 1).
    """

    label_smoothing: float = 0.1

    head: ClassVar[str] = "sequence_to_sequence"
    loss_name: ClassVar[str] = "translation_loss"
    loss_weights: ClassVar[dict] = {"translation_loss": 1.0}

    def __post_init__(self):
        if not 0 <= self.label_smoothing < 1:
            raise InputError(
                f"label_smoothing={self.label_smoothing} must be at least 0, for none, and below "
                "1, at which labels say nothing."
            )

    def batches(
        self,
        texts,
        tokenizer,
        config,
        max_tokens,
        max_length,
        target_tokenizer=None,
        shuffle=False,
        seed=0,
    ):
        """The `PairBatches` of texts.

        Args:
            texts: `ParallelTexts`.
            tokenizer: of the sources.
            config: of the model, which says what pads, starts and ends a text.
            max_tokens, shuffle, seed: as `PairBatches` takes them.
            max_length: the most tokens of a source, and of a target, the end token counted.
            target_tokenizer: of the targets; where None `tokenizer.target`, if there is one
                (`MarianTokenizer`), else that of the sources. Two have each its own end token.

        Raises:
            InputError: for a text that is too long, named by its place.
        """
        end, sides = config.end_token_id, {}
        target_tokenizer, source_end = with_target(tokenizer, target_tokenizer, end)
        for name, known, given, last in (
            ("source", tokenizer, texts.sources, source_end),
            ("target", target_tokenizer, texts.targets, end),
        ):
            sides[name] = known.encode_closed(given, last)
            check_each(texts, f"the {name}", sides[name].lengths, max_length=max_length)
        sums = sides["source"].lengths + sides["target"].lengths
        check_each(texts, "the pair", sums, max_tokens=max_tokens)
        ids = config.pad_token_id, config.start_token_id
        return PairBatches(sides["source"], sides["target"], max_tokens, *ids, shuffle, seed)

    def losses(self, labels, outputs, sample_weight=None):
        """The mean cross-entropy of the labels (B, T), -100 counting nothing."""
        weights = () if sample_weight is None else (sample_weight,)
        smoothing = self.label_smoothing
        loss = token_cross_entropy(labels, outputs["logits"], *weights, label_smoothing=smoothing)
        return {self.loss_name: loss}

    def scores(self, labels, outputs):
        """The log-likelihood of the labels, which are not smoothed, and the accuracy."""
        real = ops.cast(ops.not_equal(labels, IGNORED), "float32")
        return {
            "log_likelihood": log_likelihood(labels, outputs["logits"], real),
            "accuracy": correct(labels, outputs["logits"], real),
        }


def check_each(texts, what, sizes, **limit):
    """Raises an InputError for the first of the sizes that is above a limit, given by its name."""
    ((name, most),) = limit.items()
    for number in np.flatnonzero(sizes > most)[:1]:
        raise InputError(
            f"{texts.place(number)}: {what} has {sizes[number]} tokens, ends counted, and "
            f"{name}={most} at most; leave the pair out, split it, or give a larger {name}."
        )
