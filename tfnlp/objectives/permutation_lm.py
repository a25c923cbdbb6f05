"""Permutation language modelling.

Yang et al. 2019, 'XLNet', section 2.2 (orders), 2.3 (two streams, partial prediction), 2.4
(memory) and 2.5 (two segments); the contents of a batch follow the release (data_utils.py).
"""

import dataclasses
from typing import ClassVar

import keras
from keras import ops

from tfnlp.functional.weighted_losses import cross_entropy
from tfnlp.models import config_of
from tfnlp.objectives.batches.lane_memory import WithLaneMemory, check_memory
from tfnlp.objectives.batches.permutation_batches import TARGETS, PermutationBatches
from tfnlp.objectives.batches.special_token_template import SpecialTokenTemplate
from tfnlp.objectives.objective import Objective
from tfnlp.utils.errors import InputError
from tfnlp.utils.settings import check_at_least


@dataclasses.dataclass(frozen=True)
class PermutationLM(Objective):
    """Permutation LM objective: predict spans of tokens in a random factorisation order.

    For an order z the loss is the mean of -log p(x_{z_t} | x_{z_1}, ..., x_{z_{t-1}}) over the
    last positions of the order, t > c (Yang et al. 2019, eq. 5).

    Args:
        reuse_length: the number of tokens by which a lane advances from segment to segment, which
            the memory keeps. The model must come from `build_model(memory=True)` and have the same
            `reuse_length`. The release uses half of `max_length`. None for no memory: segments are
            independent examples in random order.
        predict_one_in: K; one in K tokens is predicted.
        max_span: the maximum length of a span in tokens.
        bidirectional: whether half of a batch is read backwards.

    Raises:
        InputError: if a number is below 1.
    """

    reuse_length: int | None = None
    predict_one_in: int = 6
    max_span: int = 5
    bidirectional: bool = True

    head: ClassVar[str] = "permutation_lm"
    loss_name: ClassVar[str] = "permutation_lm_loss"

    def __post_init__(self):
        super().__post_init__()
        check_at_least(1, predict_one_in=self.predict_one_in, max_span=self.max_span)
        if self.memory:
            check_at_least(1, reuse_length=self.reuse_length)

    @property
    def memory(self):
        """True if the model has a memory."""
        return self.reuse_length is not None

    def check(self, config, tokenizer):
        """Raise an InputError if the family, its memory or the template does not fit.

        The family must have two streams of attention.
        """
        super().check(config, tokenizer)
        SpecialTokenTemplate.from_tokenizer(tokenizer)
        if self.memory:
            check_memory(config, f"reuse_length={self.reuse_length}")
            if config.reuse_length != self.reuse_length:
                raise InputError(
                    f"reuse_length={self.reuse_length} is not the model's, which keeps "
                    f"{config.reuse_length} positions of a segment in its memory; give both one."
                )

    def trained(self, model, batch_size=None):
        """Return the model to fit, from the inputs of the batches to `logits` (B, P, V)."""
        inputs = {k: v for k, v in model.input.items() if k != "target_mapping"}
        targets = keras.Input((None,), dtype="int32", name=TARGETS)
        mapping = OneHotPositions(name="mapping")(targets, inputs["token_ids"])
        outputs = model(inputs | {"target_mapping": mapping})
        names = ("logits", "memory") if self.memory else ("logits",)
        outputs = {name: outputs[name] for name in names}
        inner = keras.Model(inputs | {TARGETS: targets}, outputs, name=model.name)
        return WithLaneMemory(inner, config_of(model), batch_size) if self.memory else inner

    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        """Build the `PermutationBatches` of a corpus."""
        options = {"seed": seed, "shuffle": shuffle, "objective": self}
        return PermutationBatches(corpus, tokenizer, batch_size, max_length, **options)

    def losses(self, labels, outputs, sample_weight=None):
        """Return the mean cross-entropy of the targets (B, P)."""
        return {self.loss_name: cross_entropy(labels, outputs["logits"], sample_weight)}


class OneHotPositions(keras.layers.Layer):
    """One-hot encoding (B, P, L) of positions (B, P); negative positions are zero rows."""

    def call(self, positions, token_ids):
        return ops.one_hot(positions, ops.shape(token_ids)[1], dtype="int32")

    def compute_output_spec(self, positions, token_ids):
        return keras.KerasTensor((*positions.shape, token_ids.shape[1]), dtype="int32")
