"""Layers to build transformers from, written in `keras.ops` alone."""

from tfnlp.layers.attention.disentangled import ATTENTION_TERMS, DisentangledAttention
from tfnlp.layers.attention.memory import update_memory
from tfnlp.layers.attention.multi_head import MultiHeadAttention
from tfnlp.layers.attention.quadratic_position import QuadraticPositionAttention
from tfnlp.layers.attention.relative import RelativeAttention
from tfnlp.layers.attention.relative_biases import RelativeBiases
from tfnlp.layers.attention.relative_position_table import RelativePositionTable
from tfnlp.layers.attention.relative_shift import relative_shift
from tfnlp.layers.attention.score import ScoreAttention
from tfnlp.layers.attention.two_stream import TwoStreamAttention
from tfnlp.layers.blocks.convolution import ConvolutionBlock
from tfnlp.layers.blocks.decoder import DecoderBlock
from tfnlp.layers.blocks.encoder import EncoderBlock
from tfnlp.layers.blocks.feed_forward import FeedForward
from tfnlp.layers.blocks.recurrent_decoder import RecurrentDecoderBlock
from tfnlp.layers.blocks.shared_encoder import SharedEncoder
from tfnlp.layers.blocks.two_stream import TwoStreamBlock
from tfnlp.layers.core.fake_quantization import fake_quantize, get_ranges, set_ranges
from tfnlp.layers.core.layer_normalization import LayerNormalization
from tfnlp.layers.core.masks import (
    causal_mask,
    padding_mask,
    permutation_masks,
    segment_mask,
    with_memory,
)
from tfnlp.layers.core.positions import log_buckets, sinusoids
from tfnlp.layers.core.truncated_normal import FastTruncatedNormal
from tfnlp.layers.embeddings.adaptive import AdaptiveEmbedding
from tfnlp.layers.embeddings.factorized import FactorizedEmbedding
from tfnlp.layers.embeddings.gradient_disentangled import GradientDisentangledEmbedding
from tfnlp.layers.embeddings.learned_positions import LearnedPositionEncoding
from tfnlp.layers.embeddings.sinusoidal_positions import SinusoidalPositionEncoding
from tfnlp.layers.embeddings.text import TextEmbedding
from tfnlp.layers.embeddings.two_stream import TwoStreamEmbedding
from tfnlp.layers.outputs.adaptive_softmax import AdaptiveSoftmax
from tfnlp.layers.outputs.choices import MergeChoices, SplitChoices
from tfnlp.layers.outputs.last_state import LastState
from tfnlp.layers.outputs.output_bias import OutputBias

__all__ = [
    "ATTENTION_TERMS",
    "AdaptiveEmbedding",
    "AdaptiveSoftmax",
    "ConvolutionBlock",
    "DecoderBlock",
    "DisentangledAttention",
    "EncoderBlock",
    "FactorizedEmbedding",
    "FastTruncatedNormal",
    "FeedForward",
    "GradientDisentangledEmbedding",
    "LastState",
    "LayerNormalization",
    "LearnedPositionEncoding",
    "MergeChoices",
    "MultiHeadAttention",
    "OutputBias",
    "QuadraticPositionAttention",
    "RecurrentDecoderBlock",
    "RelativeAttention",
    "RelativeBiases",
    "RelativePositionTable",
    "ScoreAttention",
    "SharedEncoder",
    "SinusoidalPositionEncoding",
    "SplitChoices",
    "TextEmbedding",
    "TwoStreamAttention",
    "TwoStreamBlock",
    "TwoStreamEmbedding",
    "causal_mask",
    "fake_quantize",
    "get_ranges",
    "log_buckets",
    "padding_mask",
    "permutation_masks",
    "relative_shift",
    "segment_mask",
    "set_ranges",
    "sinusoids",
    "update_memory",
    "with_memory",
]
