"""Config of DistilBERT (Sanh et al. 2019): half the layers of BERT, without segments."""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import Pooling, TextConfig


@dataclasses.dataclass(frozen=True)
class DistilBertConfig(TextConfig):
    """The sizes and rates of a DistilBERT; defaults are those of DistilBERT-base.

    Args:
        answerer_dropout: applied before an answerer's layer in training.
    """

    num_layers: int = 6
    num_segments: int = 0
    classifier_dropout: float | None = 0.2
    answerer_dropout: float = 0.1

    pooling: ClassVar[Pooling] = Pooling("first", "relu")
    packs_documents: ClassVar[bool] = True
    any_head_dim: ClassVar[bool] = True
    dropout_after: ClassVar[tuple] = ("feed_forward",)

    @property
    def tagger_dropout(self):
        """Dropout before the tagging layer."""
        return self.dropout
