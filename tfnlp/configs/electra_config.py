"""Config of ELECTRA (Clark et al. 2020), of generator and discriminator alike."""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import Pooling, TextConfig


@dataclasses.dataclass(frozen=True)
class ElectraConfig(TextConfig):
    """The sizes and rates of an ELECTRA; defaults are those of ELECTRA-small's discriminator.

    Args:
        embedding_dim: E, the width of the embedding tables; they are projected where it is not D.
        chooser_dropout: applied before a chooser's last layer in training.
    """

    num_heads: int = 4
    hidden_dim: int = 256
    intermediate_dim: int = 1024
    embedding_dim: int = 128
    chooser_dropout: float = 0.1

    pooling: ClassVar[Pooling] = Pooling("first", "gelu", dropout_before=True)
    packs_documents: ClassVar[bool] = True
    any_head_dim: ClassVar[bool] = True
    shares_embeddings: ClassVar[bool] = True

    @property
    def lm_activation(self):
        """Activation before the masked LM output, whatever that of the blocks."""
        return "gelu"
