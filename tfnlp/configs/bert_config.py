"""Configs of BERT (Devlin et al. 2019), RoBERTa (Liu et al. 2019) and XLM-R (Conneau et al. 2020).

TinyBERT and MiniLM differ from BERT in sizes alone.
"""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import Pooling, TextConfig


@dataclasses.dataclass(frozen=True)
class BertConfig(TextConfig):
    """The sizes and rates of a BERT; defaults are those of BERT-base, uncased."""

    pooling: ClassVar[Pooling] = Pooling("first", "tanh", pretrained=True)
    packs_documents: ClassVar[bool] = True
    any_head_dim: ClassVar[bool] = True
    pretrained_on_pairs: ClassVar[bool] = True


@dataclasses.dataclass(frozen=True)
class RobertaConfig(TextConfig):
    """The sizes and rates of a RoBERTa; defaults are those of RoBERTa-base.

    Positions count from `pad_token_id + 1` in its table.
    """

    vocabulary_size: int = 50265
    num_segments: int = 1
    layer_norm_epsilon: float = 1e-5
    pad_token_id: int = 1

    pooling: ClassVar[Pooling] = Pooling("first", "tanh", pretrained=True, dropout_before=True)
    packs_documents: ClassVar[bool] = True
    any_head_dim: ClassVar[bool] = True

    @property
    def chooser_dropout(self):
        """Dropout before the multiple-choice layer."""
        return self.dropout

    @property
    def lm_activation(self):
        """Activation before the masked LM output, whatever that of the blocks."""
        return "gelu"


@dataclasses.dataclass(frozen=True)
class XlmRobertaConfig(RobertaConfig):
    """The sizes and rates of an XLM-RoBERTa, a RoBERTa with the pieces of a hundred languages."""

    vocabulary_size: int = 250002
