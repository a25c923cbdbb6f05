"""Sequence-to-sequence tasks, such as translation."""

import dataclasses
from typing import ClassVar

import numpy as np
from absl import logging

from tfnlp.objectives.objective import Objective, token_scores
from tfnlp.tasks.translation_batches import TranslationBatches
from tfnlp.text.encoding import Encodings
from tfnlp.text.special_tokens import with_target
from tfnlp.text.text_arguments import check_too_long
from tfnlp.utils.errors import InputError
from tfnlp.weighted_losses import token_cross_entropy


@dataclasses.dataclass(frozen=True)
class Translation(Objective):
    """Sequence to sequence: predict each target token from the source and the tokens before it.

    Sutskever et al., eq. 1.

    Args:
        label_smoothing: e of `tfnlp.weighted_losses.token_cross_entropy` (Vaswani et al. 2017,
            section 5.4); 0 for none.
        too_long: the policy for a pair that is too long. "error" raises; "skip" leaves it out;
            "cut" drops the ends of its texts. A cut source keeps an end token; a cut target has
            none, so its end is not learned. The number of skipped or cut pairs is logged.

    Raises:
        InputError: if label smoothing is outside [0, 1), or `too_long` is unknown.
    """

    label_smoothing: float = 0.1
    too_long: str = "error"

    head: ClassVar[str] = "sequence_to_sequence"
    loss_name: ClassVar[str] = "translation_loss"

    def __post_init__(self):
        if not 0 <= self.label_smoothing < 1:
            raise InputError(
                f"label_smoothing={self.label_smoothing} must be at least 0, for none, and below "
                "1, at which labels say nothing."
            )
        check_too_long(self.too_long)

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
        """Build the `TranslationBatches` of texts.

        Args:
            texts: `ParallelTexts`.
            tokenizer: the tokenizer of the sources.
            config: the config of the model, with the padding, start and end ids.
            max_tokens, shuffle, seed: as in `TranslationBatches`.
            max_length: the maximum number of tokens of a source, and of a target, including the
                end token.
            target_tokenizer: the tokenizer of the targets; where None, `tokenizer.target` if there
                is one (`MarianTokenizer`), else `tokenizer`. Two tokenizers have separate end
                tokens.

        Raises:
            InputError: for a pair that is too long, with its place, if `too_long` is "error"; for
                a pair of more than `max_tokens` after its texts are cut; and if no pair is left.
        """
        end = config.end_token_id
        target_tokenizer, source_end = with_target(tokenizer, target_tokenizer, end)
        sources = tokenizer.encode_closed(texts.sources, source_end)
        targets = target_tokenizer.encode_closed(texts.targets, end)
        beyond = np.maximum(sources.lengths, targets.lengths) > max_length
        if self.too_long == "skip":
            beyond |= sources.lengths + targets.lengths > max_tokens
        if self.too_long != "error" and beyond.any():
            logging.warning(
                "%d of %d pairs are longer than max_length=%d or max_tokens=%d, %s the first; "
                "they were %s.",
                beyond.sum(),
                len(texts),
                max_length,
                max_tokens,
                texts.place(int(beyond.argmax())),
                "cut" if self.too_long == "cut" else "skipped",
            )
        if self.too_long == "skip":
            if beyond.all():
                raise InputError(
                    f"{texts.place(0)}: this pair and all others are longer than "
                    f"max_length={max_length} or max_tokens={max_tokens}; give larger ones."
                )
            sources, targets = (_rows(each, ~beyond) for each in (sources, targets))
        elif self.too_long == "cut":
            sources = _cut(sources, max_length, source_end)
            targets = _cut(targets, max_length)
        for name, each in (("source", sources), ("target", targets)):
            check_each(texts, f"the {name}", each.lengths, max_length=max_length)
        sums = sources.lengths + targets.lengths
        check_each(texts, "the pair", sums, max_tokens=max_tokens)
        ids = config.pad_token_id, config.start_token_id
        return TranslationBatches(sources, targets, max_tokens, *ids, shuffle, seed)

    def losses(self, labels, outputs, sample_weight=None):
        """Return the mean cross-entropy of the labels (B, T), ignoring -100."""
        weights = () if sample_weight is None else (sample_weight,)
        smoothing = self.label_smoothing
        loss = token_cross_entropy(labels, outputs["logits"], *weights, label_smoothing=smoothing)
        return {self.loss_name: loss}

    def scores(self, labels, outputs):
        """Return the log-likelihood of the labels, without smoothing, and the accuracy."""
        return token_scores(labels, outputs)


def check_each(texts, what, sizes, **limit):
    """Raise an InputError for the first size above a limit, which is a keyword argument."""
    ((name, most),) = limit.items()
    for number in np.flatnonzero(sizes > most)[:1]:
        raise InputError(
            f"{texts.place(number)}: {what} has {sizes[number]} tokens, ends counted, and "
            f"{name}={most} at most; split the pair, or give a larger {name}, too_long='cut' or "
            "'skip'."
        )


def _rows(encodings, kept):
    """Return the rows of `Encodings` where `kept`, (rows,) bool, is true."""
    lengths = encodings.lengths
    return _parts(encodings, np.repeat(kept, lengths), lengths[kept], encodings.truncated[kept])


def _cut(encodings, most, end=None):
    """Cut rows of `Encodings` to `most` tokens, and end a cut row with `end` if it is not None."""
    lengths = encodings.lengths
    places = np.arange(len(encodings.token_ids)) - np.repeat(encodings.starts[:-1], lengths)
    kept = _parts(encodings, places < most, np.minimum(lengths, most), lengths > most)
    if end is not None:
        kept.token_ids[kept.starts[1:][kept.truncated] - 1] = end
    return kept


def _parts(encodings, mask, lengths, cut):
    """Return `Encodings` of some of the tokens, in rows of new lengths."""
    starts = np.append(0, np.cumsum(lengths))
    return Encodings(encodings.token_ids[mask], encodings.segment_ids[mask], starts, cut)
