"""Config of XLNet (Yang et al. 2019)."""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import Pooling, TextConfig


@dataclasses.dataclass(frozen=True)
class XLNetConfig(TextConfig):
    """The sizes and rates of an XLNet; defaults are those of XLNet-base, cased.

    Args:
        clamp_length: larger distances count as this one; None for no limit.
        memory_length: the most earlier positions to keep where the model has a memory; all
            if None.
        reuse_length: keep only the first positions of a segment, where the next one reads the
            others again; all if None.
    """

    vocabulary_size: int = 32000
    max_length: int | None = None
    num_segments: int = 3
    pad_token_id: int = 5
    classifier_dropout: float | None = 0.1
    clamp_length: int | None = None
    memory_length: int | None = None
    reuse_length: int | None = None

    pooling: ClassVar[Pooling] = Pooling("last", "tanh")
    language_model: ClassVar[str] = "permutation_lm"
    has_memory: ClassVar[bool] = True

    @property
    def tagger_dropout(self):
        """Dropout before the tagging layer: 0, as the encoder ends with dropout."""
        return 0.0
