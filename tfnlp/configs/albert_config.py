"""Config of ALBERT (Lan et al. 2020)."""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import Pooling, TextConfig


@dataclasses.dataclass(frozen=True)
class AlbertConfig(TextConfig):
    """The sizes and rates of an ALBERT; defaults are those of ALBERT-base v2.

    Args:
        embedding_dim: E, the width of the embedding tables, which are always projected.
        num_groups: groups of layers that share their weights.
    """

    vocabulary_size: int = 30000
    activation: str = "gelu_tanh"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    classifier_dropout: float | None = 0.1
    embedding_dim: int = 128
    num_groups: int = 1

    pooling: ClassVar[Pooling] = Pooling("first", "tanh", pretrained=True)
    packs_documents: ClassVar[bool] = True
    any_head_dim: ClassVar[bool] = True
    dropout_after: ClassVar[tuple] = ("attention",)
    pretrained_on_pairs: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        self.check_divides("num_groups", "num_layers")

    @property
    def pair_dropout(self):
        """Dropout before the pair classifier."""
        return self.head_dropout
