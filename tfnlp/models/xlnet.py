"""XLNet (Yang et al. 2019): relative positions and segments, two streams in pretraining."""

import dataclasses
from typing import ClassVar

import keras
from keras import ops

from tfnlp.layers import (
    TwoStreamAttention,
    TwoStreamEmbedding,
    permutation_masks,
    segment_mask,
)
from tfnlp.models.blocks import encoder_blocks, run_blocks
from tfnlp.models.config import Pooling, TextConfig


@keras.saving.register_keras_serializable("tfnlp")
@dataclasses.dataclass(frozen=True)
class XLNetConfig(TextConfig):
    """The sizes and rates of an XLNet; defaults are those of XLNet-base, cased.

    Args:
        clamp_length: the farthest distance that is told apart; any where None.
    """

    vocabulary_size: int = 32000
    max_length: int | None = None
    num_segments: int = 3
    pad_token_id: int = 5
    clamp_length: int | None = None

    pooling: ClassVar[Pooling] = Pooling("last", "tanh")


def encode_xlnet(config, inputs, dtype):
    """The embeddings and every block's output, and every block's scores, of an XLNet.

    With `permutation_order` and `target_mapping` among the inputs both streams run, and what
    is returned is of the query stream.
    """

    def attention():
        return TwoStreamAttention(
            config.num_heads,
            config.hidden_dim // config.num_heads,
            dropout=config.attention_dropout,
            clamp_length=config.clamp_length,
            position_dropout=config.dropout,
            kernel_initializer=config.initializer,
            bias_initializer=config.initializer,
            dtype=dtype,
            name="attention",
        )

    embed = TwoStreamEmbedding(
        config.vocabulary_size,
        config.hidden_dim,
        dropout=config.dropout,
        embeddings_initializer=config.initializer,
        dtype=dtype,
        name="embeddings",
    )
    blocks = encoder_blocks(config, dtype, attention, feed_forward_dropout=config.dropout)
    segments = inputs["segment_ids"]
    mask = inputs["padding_mask"][:, None, :]  # (B, 1, L)
    arguments = {"segment_mask": segment_mask(segments, segments)}
    if "target_mapping" in inputs:
        streams = embed(inputs["token_ids"], inputs["target_mapping"])
        masks = permutation_masks(inputs["permutation_order"])
        masks = [ops.logical_and(m, ops.cast(mask, "bool")) for m in masks]
        arguments["target_mapping"] = inputs["target_mapping"]
        states, scores = _run_streams(blocks, streams, masks, arguments)
    else:
        x = embed(inputs["token_ids"])
        states, scores = run_blocks(blocks, x, attention_mask=mask, attention_arguments=arguments)
    states[-1] = keras.layers.Dropout(config.dropout, dtype=dtype, name="dropout")(states[-1])
    return states, scores


def _run_streams(blocks, streams, masks, arguments):
    """Sends both streams through the blocks; gives the query stream's states and scores."""
    content, query = streams
    content_mask, query_mask = masks
    states, scores = [query], []
    for block in blocks:
        (content, query), (_, query_scores) = block(
            content,
            attention_mask=content_mask,
            attention_arguments=arguments
            | {"query_stream": query, "query_attention_mask": query_mask},
            return_attention_scores=True,
        )
        states.append(query)
        scores.append(query_scores)
    return states, scores
