"""Configs of GPT (Radford et al. 2018) and GPT-2 (Radford et al. 2019)."""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import Pooling, TextConfig


@dataclasses.dataclass(frozen=True)
class GptConfig(TextConfig):
    """The sizes and rates of a GPT; defaults are those of the first, 'openai-gpt'.

    Args:
        embedding_dropout: applied to the embeddings in training.
    """

    vocabulary_size: int = 40478
    activation: str = "gelu_tanh"
    num_segments: int = 0
    layer_norm_epsilon: float = 1e-5
    embedding_dropout: float = 0.1

    pooling: ClassVar[Pooling] = Pooling("last", None, bare=True)
    language_model: ClassVar[str] = "causal_lm"
    packs_documents: ClassVar[bool] = True


@dataclasses.dataclass(frozen=True)
class Gpt2Config(GptConfig):
    """The sizes and rates of a GPT-2; defaults are those of the smallest, 'gpt2'."""

    vocabulary_size: int = 50257
    max_length: int | None = 1024

    @property
    def tagger_dropout(self):
        """Dropout before the tagging layer: 0.1 by default, as in `transformers`."""
        return 0.1 if self.classifier_dropout is None else self.classifier_dropout
