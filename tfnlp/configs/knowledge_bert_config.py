"""Config of ERNIE (Zhang et al. 2019), a BERT that reads entities of a knowledge graph."""

import dataclasses
from typing import ClassVar

from tfnlp.configs.bert_config import BertConfig
from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class KnowledgeBertConfig(BertConfig):
    """The sizes and rates of a BERT whose last blocks are aggregators of tokens and entities.

    Args: those of `BertConfig`, and
        num_entities: rows of the table of entity vectors, of which row 0 means no entity.
        entity_dim: E, the width of an entity's vector.
        num_entity_heads: heads of the attention among entities.
        num_knowledge_layers: the last blocks of `num_layers`, which are aggregators.

    Raises:
        InputError: if heads do not divide the width, or there are not so many blocks.
    """

    num_entities: int = 1
    entity_dim: int = 100
    num_entity_heads: int = 4
    num_knowledge_layers: int = 2

    packs_documents: ClassVar[bool] = False
    reads_entities: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        self.check_divides("num_entity_heads", "entity_dim")
        if not 1 <= self.num_knowledge_layers <= self.num_layers:
            raise InputError(
                f"num_knowledge_layers={self.num_knowledge_layers} must be 1 to "
                f"{self.num_layers}, the number of layers."
            )
