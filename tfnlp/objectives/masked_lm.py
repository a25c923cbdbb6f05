"""Masked language modelling.

Devlin et al. 2019, 'BERT', section 3.1, task 1, with dynamic masking in each epoch as in Liu et
al. 2019, 'RoBERTa', section 4.1.
"""

import dataclasses
from typing import ClassVar

from tfnlp.functional.weighted_losses import token_cross_entropy
from tfnlp.objectives.batches.masking import MaskedBatches, Masking
from tfnlp.objectives.batches.packed_segments import join_documents, pack_segments
from tfnlp.objectives.batches.segments import Segments
from tfnlp.objectives.batches.special_token_template import SpecialTokenTemplate
from tfnlp.objectives.masked_positions import logits_at_positions
from tfnlp.objectives.objective import Objective, accuracy
from tfnlp.utils.settings import setting


@dataclasses.dataclass(frozen=True)
class MaskedLM(Objective):
    """Masked LM objective; a distillation takes it as a task.

    The loss is the mean of -log p(x_i | masked text) over the masked positions i.

    Args:
        masked_units: "tokens"; "words", all tokens of a word together; or "spans" of several words
            (Lan et al. 2020, 'ALBERT', section 3.1).
        share: the share of each text's tokens or words to predict; at least one.
        masked: the share of those that become [MASK].
        replaced: the share of those that become a random token.
        longest_span: the maximum number of words of a span, which a shorter text lowers.
        packing: what a text is filled with up to the length limit: "separate", with sentences of
            a document (Liu et al. 2019, 'RoBERTa', section 4.2, 'DOC-SENTENCES'); "joined", with
            sentences across documents, which see each other ('FULL-SENTENCES'); "masked", with
            such texts of several documents, each of which sees itself alone; "sentences", with
            one sentence.

    Raises:
        InputError: if `masked_units` is unknown.
    """

    masked_units: str = setting(
        "tokens", "Units that are masked.", choices=("tokens", "words", "spans")
    )
    share: float = 0.15
    masked: float = 0.8
    replaced: float = 0.1
    longest_span: int = 3
    packing: str = setting(
        "separate", "Packing of texts.", choices=("separate", "joined", "masked", "sentences")
    )

    head: ClassVar[str] = "masked_lm"
    num_classes: ClassVar[None] = None
    loss_name: ClassVar[str] = "masked_lm_loss"

    def check(self, config, tokenizer):
        """Raise an InputError if the model's config or the tokenizer does not fit."""
        super().check(config, tokenizer)
        self.masking(tokenizer)

    def masking(self, tokenizer):
        """Return the `Masking` of a tokenizer; raise an InputError if it has no mask token."""
        return Masking.from_tokenizer(
            tokenizer,
            self.share,
            self.masked_units != "tokens",
            masked=self.masked,
            replaced=self.replaced,
            longest_span=self.longest_span if self.masked_units == "spans" else 1,
        )

    def trained(self, model):
        """Return the model to fit, from a batch's inputs to `logits` (B, P, V)."""
        return logits_at_positions(model)

    def batches(
        self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True, kind=MaskedBatches
    ):
        """Build the `MaskedBatches` of a corpus, or those of another `kind`, with labels (B, P).

        Raises:
            InputError: if `max_length` leaves no room.
        """
        template = SpecialTokenTemplate.from_tokenizer(tokenizer)
        return kind(
            self._texts(corpus, template, max_length),
            batch_size,
            self.masking(tokenizer),
            shuffle=shuffle,
            seed=seed,
            pad_token_id=tokenizer.pad_token_id,
        )

    def _texts(self, corpus, template, max_length):
        """Return the `Segments` of a corpus, or the `PackedSegments`."""
        if self.packing == "joined":
            return join_documents(corpus, template, max_length)
        filled = self.packing != "sentences"
        segments = Segments.from_corpus(corpus, template, max_length, filled)
        return pack_segments(segments, max_length) if self.packed else segments

    def loss(self, labels, outputs, sample_weight=None):
        """Return the mean cross-entropy of labels (B, P) and logits (B, P, V), ignoring -100.

        P is the largest number of masked positions of a text in the batch.
        """
        return token_cross_entropy(labels, outputs["logits"], sample_weight)

    def losses(self, labels, outputs, sample_weight=None):
        """Return the loss of a batch, by its name."""
        return {"masked_lm_loss": self.loss(labels, outputs, sample_weight)}

    def scores(self, labels, outputs):
        """Return `masked_accuracy`, the numbers of correct and of all masked tokens."""
        return {"masked_accuracy": accuracy(labels, outputs["logits"])}
