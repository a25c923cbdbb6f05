"""Layers to build transformers from, written in `keras.ops` alone."""

from tfnlp.layers.encoder_block import EncoderBlock
from tfnlp.layers.factorized_embedding import FactorizedEmbedding
from tfnlp.layers.feed_forward import FeedForward
from tfnlp.layers.multi_head_attention import MultiHeadAttention
from tfnlp.layers.text_embedding import TextEmbedding

__all__ = [
    "EncoderBlock",
    "FactorizedEmbedding",
    "FeedForward",
    "MultiHeadAttention",
    "TextEmbedding",
]
