"""Layers to build transformers from, written in `keras.ops` alone."""

from tfnlp.layers.adaptive_embedding import AdaptiveEmbedding
from tfnlp.layers.adaptive_softmax import AdaptiveSoftmax
from tfnlp.layers.choices import MergeChoices, SplitChoices
from tfnlp.layers.convolution_block import ConvolutionBlock
from tfnlp.layers.decoder_block import DecoderBlock
from tfnlp.layers.disentangled_attention import (
    ATTENTION_TERMS,
    DisentangledAttention,
    RelativePositionTable,
)
from tfnlp.layers.encoder_block import EncoderBlock
from tfnlp.layers.factorized_embedding import FactorizedEmbedding
from tfnlp.layers.feed_forward import FeedForward
from tfnlp.layers.last_state import LastState
from tfnlp.layers.layer_normalization import LayerNormalization
from tfnlp.layers.masks import (
    causal_mask,
    padding_mask,
    permutation_masks,
    segment_mask,
    with_memory,
)
from tfnlp.layers.memory import update_memory
from tfnlp.layers.multi_head_attention import MultiHeadAttention
from tfnlp.layers.output_bias import OutputBias
from tfnlp.layers.positions import (
    LearnedPositionEncoding,
    SinusoidalPositionEncoding,
    log_buckets,
    sinusoids,
)
from tfnlp.layers.quadratic_position_attention import QuadraticPositionAttention
from tfnlp.layers.relative_attention import RelativeAttention, RelativeBiases
from tfnlp.layers.relative_shift import relative_shift
from tfnlp.layers.score_attention import ScoreAttention
from tfnlp.layers.shared_encoder import SharedEncoder
from tfnlp.layers.text_embedding import TextEmbedding
from tfnlp.layers.truncated_normal import FastTruncatedNormal
from tfnlp.layers.two_stream_attention import TwoStreamAttention
from tfnlp.layers.two_stream_block import TwoStreamBlock
from tfnlp.layers.two_stream_embedding import TwoStreamEmbedding

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
    "LastState",
    "LayerNormalization",
    "LearnedPositionEncoding",
    "MergeChoices",
    "MultiHeadAttention",
    "OutputBias",
    "QuadraticPositionAttention",
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
    "log_buckets",
    "padding_mask",
    "permutation_masks",
    "relative_shift",
    "segment_mask",
    "sinusoids",
    "update_memory",
    "with_memory",
]
