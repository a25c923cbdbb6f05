"""Config of ModernBERT (Warner et al. 2024).

Ettin (Weller et al. 2025) and mmBERT (Marone et al. 2025) differ from it in sizes and rates alone.
"""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import Pooling, TextConfig
from tfnlp.utils.errors import InputError

POOLINGS = {"cls": "first", "mean": "mean"}


@dataclasses.dataclass(frozen=True)
class ModernBertConfig(TextConfig):
    """The sizes and rates of a ModernBERT; defaults are those of ModernBERT-base.

    Args:
        dropout: applied within feed-forward networks in training.
        attention_dropout: applied to attention weights and outputs in training.
        embedding_dropout: applied to the embeddings in training.
        local_attention: the positions that a local block sees, half of them on either side.
        global_every: the first of so many blocks sees all positions; the others are local.
        local_theta, global_theta: theta of the rotary positions of either.
        classifier_pooling: "cls" or "mean", the state of a text that heads read.
    """

    vocabulary_size: int = 50368
    num_layers: int = 22
    intermediate_dim: int = 1152
    dropout: float = 0.0
    attention_dropout: float = 0.0
    classifier_dropout: float | None = 0.0
    max_length: int | None = 8192
    num_segments: int = 0
    layer_norm_epsilon: float = 1e-5
    pad_token_id: int = 50283
    embedding_dropout: float = 0.0
    local_attention: int = 128
    global_every: int = 3
    local_theta: float = 10_000.0
    global_theta: float = 160_000.0
    classifier_pooling: str = "cls"

    packs_documents: ClassVar[bool] = True
    biases: ClassVar[bool] = False
    prediction_head: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        if self.classifier_pooling not in POOLINGS:
            raise InputError(
                f"classifier_pooling={self.classifier_pooling!r} must be one of "
                f"{', '.join(POOLINGS)}."
            )
        if self.key_dim % 2:
            raise InputError(
                f"num_heads={self.num_heads} must divide hidden_dim={self.hidden_dim} into even "
                "parts, whose halves rotary positions turn."
            )
        for name, least in (("local_attention", 2), ("global_every", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name}={getattr(self, name)} must be at least {least}.")

    @property
    def pooling(self):
        """The state that heads on whole texts read."""
        return Pooling(POOLINGS[self.classifier_pooling], None)

    @property
    def answerer_dropout(self):
        """Dropout before the question-answering layer."""
        return self.head_dropout

    @property
    def lm_activation(self):
        """Activation of the prediction heads, whatever that of the blocks."""
        return "gelu"

    def is_global(self, number):
        """Return whether a block, counted from 0, sees all positions."""
        return number % self.global_every == 0
