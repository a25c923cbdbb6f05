"""Config of Transformer-XL (Dai et al. 2019)."""

import dataclasses
from typing import ClassVar

from tfnlp.configs.base_config import Pooling, TextConfig
from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class TransformerXLConfig(TextConfig):
    """The sizes and rates of a Transformer-XL; defaults are those trained on WikiText-103.

    Args:
        cutoffs: the first id of each cluster of rarer tokens (see `AdaptiveEmbedding`).
        embedding_dim: width of the first cluster; `hidden_dim` if None.
        div_value: by how much each cluster is narrower than the one before.
        tie_projections: whether the softmax shares all projections but the first.
        memory_length: the most earlier positions to keep.
        clamp_length: larger distances count as this one; None for no limit.
        same_length: whether a position sees the last `memory_length` ones alone, itself
            included, so that all see equally many.
        share_biases: whether all blocks share the biases u and v.
    """

    vocabulary_size: int = 267735
    num_layers: int = 18
    num_heads: int = 16
    hidden_dim: int = 1024
    intermediate_dim: int = 4096
    activation: str = "relu"
    attention_dropout: float = 0.0
    max_length: int | None = None
    num_segments: int = 0
    layer_norm_epsilon: float = 1e-5
    cutoffs: tuple = (20000, 40000, 200000)
    embedding_dim: int | None = None
    div_value: int = 4
    tie_projections: bool = True
    memory_length: int | None = 1600
    clamp_length: int | None = 1000
    same_length: bool = True
    share_biases: bool = False

    pooling: ClassVar[Pooling] = Pooling("last", None, bare=True)
    language_model: ClassVar[str] = "causal_lm"
    adaptive_softmax: ClassVar[bool] = True
    has_memory: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        if self.same_length and not self.memory_length:
            raise InputError("same_length needs a memory_length of at least 1.")
