"""Transformer-XL (Dai et al. 2019): relative positions, memory, adaptive input and softmax."""

import dataclasses
from typing import ClassVar

import keras
from keras import ops

from tfnlp.layers import AdaptiveEmbedding, RelativeAttention, RelativeBiases
from tfnlp.models.base_config import Pooling, TextConfig
from tfnlp.models.shared_parts import (
    after_memory,
    encoder_blocks,
    relative_arguments,
    run_blocks,
    updated_memory,
)
from tfnlp.utils.errors import InputError


@keras.saving.register_keras_serializable("tfnlp")
@dataclasses.dataclass(frozen=True)
class TransformerXLConfig(TextConfig):
    """The sizes and rates of a Transformer-XL; defaults are those trained on WikiText-103.

    Args:
        cutoffs: the first id of each cluster of rarer tokens (see `AdaptiveEmbedding`).
        embedding_dim: width of the first cluster; `hidden_dim` if None.
        div_value: by how much each cluster is narrower than the one before.
        tie_projections: whether the softmax shares all projections but the first.
        memory_length: the most earlier positions to keep.
        clamp_length: the farthest distance that is told apart; any if None.
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


def encode_transformer_xl(config, inputs, options):
    """Run a Transformer-XL; return as `run_blocks` does.

    With `memory` among the inputs, the third result is the new memory.
    """

    def attention():
        return RelativeAttention(**relative_arguments(config, options))

    embed = AdaptiveEmbedding(
        config.vocabulary_size,
        config.hidden_dim,
        cutoffs=config.cutoffs,
        embedding_dim=config.embedding_dim,
        div_value=config.div_value,
        dropout=config.dropout,
        embeddings_initializer=config.initializer,
        kernel_initializer=config.initializer,
        dtype=options.dtype,
        name="embeddings",
    )
    # Keras takes a layer in a model for one with as many outputs at every call: one call is all.
    x, _, _ = embed(inputs["token_ids"], return_tables=True)
    memory = inputs.get("memory")
    seen = after_memory(inputs["padding_mask"], memory, 1)[:, None, :]  # (B, 1, S)
    if config.same_length:
        window = _window_mask(inputs["token_ids"], memory, config.memory_length)
        seen = ops.logical_and(ops.cast(seen, "bool"), window)
    arguments = {}
    if config.share_biases:
        biases = RelativeBiases(
            config.num_heads,
            config.hidden_dim // config.num_heads,
            bias_initializer=config.initializer,
            dtype=options.dtype,
            name="biases",
        )
        arguments["content_bias"], arguments["position_bias"] = biases(x)
    states, further = run_blocks(
        encoder_blocks(config, options, attention, feed_forward_dropout=config.dropout),
        x,
        options,
        memory=memory,
        attention_mask=seen,
        use_causal_mask=True,
        attention_arguments=arguments,
    )
    new_memory = updated_memory(memory, states[:-1], config.memory_length)
    states[-1] = keras.layers.Dropout(config.dropout, dtype=options.dtype, name="dropout")(
        states[-1]
    )
    return states, further, new_memory


def _window_mask(token_ids, memory, window):
    """Return a (B, T, S) boolean mask: true if a key is less than `window` before the query."""
    ones = ops.ones_like(token_ids)
    keys = ops.cumsum(after_memory(ones, memory, 1), axis=1)  # (B, S): 1, 2, ...
    # The queries are the last of the keys.
    queries = ops.cumsum(ones, axis=1) - ops.sum(ones, axis=1, keepdims=True) + keys[:, -1:]
    return queries[:, :, None] - keys[:, None, :] < window
