"""Sequence-to-sequence tasks, such as translation."""

import dataclasses
from typing import ClassVar

import numpy as np

from tfnlp.functional.weighted_losses import token_cross_entropy
from tfnlp.objectives.objective import Objective, token_scores
from tfnlp.tasks.translation_batches import TranslationBatches
from tfnlp.text.reading.text_arguments import check_too_long, warn_of_long
from tfnlp.text.tokenizers.special_tokens import with_target
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import setting


@dataclasses.dataclass(frozen=True)
class Translation(Objective):
    """Sequence to sequence: predict each target token from the source and the tokens before it.

    Sutskever et al., eq. 1.

    Args:
        label_smoothing: as in the help of its field.
        too_long: the policy for a pair that is too long. "error" raises; "skip" leaves it out;
            "cut" drops the ends of its texts. A cut source keeps an end token; a cut target has
            none, so its end is not learned. The number of skipped or cut pairs is logged.

    Raises:
        InputError: if label smoothing is outside [0, 1), or `too_long` is unknown.
    """

    label_smoothing: float = setting(
        0.1,
        "e of label smoothing (Vaswani et al. 2017, section 5.4); 0: none.",
        low=0,
        below=1,
    )
    too_long: str = "error"

    head: ClassVar[str] = "sequence_to_sequence"
    loss_name: ClassVar[str] = "translation_loss"

    def __post_init__(self):
        super().__post_init__()
        check_too_long(self.too_long)

    def batches(self, texts, tokenizer, config, max_tokens, max_length, shuffle=False, seed=0):
        """Build the `TranslationBatches` of texts.

        Args:
            texts: `ParallelTexts`.
            tokenizer: the tokenizer of both languages, or of the sources with a `target` of its
                own (`MarianTokenizer`). Two tokenizers have separate end tokens.
            config: the config of the model, with the padding, start and end ids.
            max_tokens, shuffle, seed: as in `TranslationBatches`.
            max_length: the maximum number of tokens of a source, and of a target, including the
                end token.

        Raises:
            InputError: for a pair that is too long, with its place, if `too_long` is "error", if
                it is still after its texts are cut, or if all pairs are.
        """
        target_tokenizer, source_end = with_target(tokenizer, None, config.end_token_id)
        sources = tokenizer.encode_closed(texts.sources, source_end)
        targets = target_tokenizer.encode_closed(texts.targets, config.end_token_id)
        if self.too_long == "cut":
            is_long = np.maximum(sources.lengths, targets.lengths) > max_length
            warn_of_long(is_long, "pairs", texts.place, f"max_length={max_length}", "cut")
            sources = sources.truncate(max_length, source_end)
            targets = targets.truncate(max_length)
        sizes = np.stack([sources.lengths, targets.lengths])  # (2, pairs)
        is_long = (sizes.max(0) > max_length) | (sizes.sum(0) > max_tokens)
        limits = f"max_length={max_length} or max_tokens={max_tokens}"
        if self.too_long == "skip" and not is_long.all():
            warn_of_long(is_long, "pairs", texts.place, limits, "skip")
            sources, targets = sources.select(~is_long), targets.select(~is_long)
        elif is_long.any():
            first = int(is_long.argmax())
            raise InputError(
                f"{texts.place(first)}: the pair has {sizes[0, first]} and {sizes[1, first]} "
                f"tokens, end tokens included, which is more than {limits} allows; split it, or "
                "give a larger one, too_long='cut' or 'skip'."
            )
        return TranslationBatches(
            sources,
            targets,
            max_tokens,
            pad_token_id=config.pad_token_id,
            start_token_id=config.start_token_id,
            shuffle=shuffle,
            seed=seed,
        )

    def losses(self, labels, outputs, sample_weight=None):
        """Return the mean cross-entropy of the labels (B, T), ignoring -100."""
        logits, smoothing = outputs["logits"], self.label_smoothing
        loss = token_cross_entropy(labels, logits, sample_weight, label_smoothing=smoothing)
        return {self.loss_name: loss}

    def scores(self, labels, outputs):
        """Return the log-likelihood of the labels, without smoothing, and the accuracy."""
        return token_scores(labels, outputs)
