"""ALBERT (Lan et al. 2020): factorized embeddings, blocks that share their weights."""

import dataclasses
from typing import ClassVar

import keras

from tfnlp.layers import SharedEncoder
from tfnlp.models.base_config import Pooling, TextConfig
from tfnlp.models.shared_parts import text_embedding
from tfnlp.utils.errors import InputError


@keras.saving.register_keras_serializable("tfnlp")
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
    any_head_dim: ClassVar[bool] = True
    dropout_after: ClassVar[tuple] = ("attention",)
    pretrained_on_pairs: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        if self.num_layers % self.num_groups:
            raise InputError(
                f"num_groups={self.num_groups} does not divide num_layers={self.num_layers}."
            )

    @property
    def pair_dropout(self):
        """Dropout before the pair classifier."""
        return self.head_dropout


def encode_albert(config, inputs, options):
    """Run an ALBERT encoder; return as `run_blocks` does."""
    embed = text_embedding(config, options, embedding_dim=config.embedding_dim)
    encoder = SharedEncoder(
        config.num_layers,
        config.num_heads,
        config.intermediate_dim,
        num_groups=config.num_groups,
        activation=config.activation,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        layer_norm_epsilon=config.layer_norm_epsilon,
        kernel_initializer=config.initializer,
        dropout_after=config.dropout_after,
        block_size=options.block_size,
        key_dim=config.head_dim,
        dtype=options.dtype,
        name="encoder",
    )
    _, states, *further = encoder(
        embed(inputs["token_ids"], inputs["segment_ids"]),
        attention_mask=inputs["padding_mask"][:, None, :],
        return_hidden_states=True,
        **options.block_arguments,
    )
    return states, dict(zip(options.block_outputs, further, strict=True))
