"""Layers to build transformers from, written in `keras.ops` alone.

Decisions: docs/decisions/layers.md.
"""

from tfnlp.functional.masks import (
    causal_mask,
    padding_mask,
    permutation_masks,
    segment_mask,
    with_memory,
)
from tfnlp.functional.memory import update_memory
from tfnlp.functional.positions import log_buckets, sinusoids
from tfnlp.functional.relative_shift import relative_shift
from tfnlp.layers.attention.disentangled import ATTENTION_TERMS, DisentangledAttention
from tfnlp.layers.attention.multi_head import MultiHeadAttention
from tfnlp.layers.attention.path_attention import PathAttention
from tfnlp.layers.attention.quadratic_position import QuadraticPositionAttention
from tfnlp.layers.attention.relative import RelativeAttention
from tfnlp.layers.attention.relative_biases import RelativeBiases
from tfnlp.layers.attention.relative_position_table import RelativePositionTable
from tfnlp.layers.attention.rotary_embedding import RotaryEmbedding
from tfnlp.layers.attention.score_attention import ScoreAttention
from tfnlp.layers.attention.two_stream import TwoStreamAttention
from tfnlp.layers.blocks.convolution_block import ConvolutionBlock
from tfnlp.layers.blocks.decoder_block import DecoderBlock
from tfnlp.layers.blocks.encoder_block import EncoderBlock
from tfnlp.layers.blocks.feed_forward import FeedForward
from tfnlp.layers.blocks.gather_nodes import GatherNodes
from tfnlp.layers.blocks.graph_convolution import GraphConvolution
from tfnlp.layers.blocks.knowledge_block import KnowledgeBlock
from tfnlp.layers.blocks.knowledge_fusion import KnowledgeFusion
from tfnlp.layers.blocks.projected_lstm import ProjectedLSTM
from tfnlp.layers.blocks.recurrent_decoder import RecurrentDecoderBlock
from tfnlp.layers.blocks.shared_encoder import SharedEncoder
from tfnlp.layers.blocks.two_stream_block import TwoStreamBlock
from tfnlp.layers.core.initializers import FastTruncatedNormal
from tfnlp.layers.core.layer_normalization import LayerNormalization
from tfnlp.layers.embeddings.adaptive import AdaptiveEmbedding
from tfnlp.layers.embeddings.character_cnn import CharacterCNN
from tfnlp.layers.embeddings.factorized import FactorizedEmbedding
from tfnlp.layers.embeddings.gradient_disentangled import GradientDisentangledEmbedding
from tfnlp.layers.embeddings.learned_positions import LearnedPositionEncoding
from tfnlp.layers.embeddings.sinusoidal_positions import SinusoidalPositionEncoding
from tfnlp.layers.embeddings.text_embedding import TextEmbedding
from tfnlp.layers.embeddings.two_stream_embedding import TwoStreamEmbedding
from tfnlp.layers.outputs.adaptive_softmax import AdaptiveSoftmax
from tfnlp.layers.outputs.choices import MergeChoices, SplitChoices
from tfnlp.layers.outputs.last_state import LastState
from tfnlp.layers.outputs.mean_pooling import MeanPooling
from tfnlp.layers.outputs.output_bias import OutputBias
from tfnlp.layers.outputs.scalar_mix import ScalarMix
from tfnlp.layers.outputs.sentence_pooling import SentencePooling
from tfnlp.quantization.fake_quantization import fake_quantize, get_ranges, set_ranges

__all__ = [
    "ATTENTION_TERMS",
    "AdaptiveEmbedding",
    "AdaptiveSoftmax",
    "CharacterCNN",
    "ConvolutionBlock",
    "DecoderBlock",
    "DisentangledAttention",
    "EncoderBlock",
    "FactorizedEmbedding",
    "FastTruncatedNormal",
    "FeedForward",
    "GatherNodes",
    "GradientDisentangledEmbedding",
    "GraphConvolution",
    "KnowledgeBlock",
    "KnowledgeFusion",
    "LastState",
    "LayerNormalization",
    "LearnedPositionEncoding",
    "MeanPooling",
    "MergeChoices",
    "MultiHeadAttention",
    "OutputBias",
    "PathAttention",
    "ProjectedLSTM",
    "QuadraticPositionAttention",
    "RecurrentDecoderBlock",
    "RelativeAttention",
    "RelativeBiases",
    "RelativePositionTable",
    "RotaryEmbedding",
    "ScalarMix",
    "ScoreAttention",
    "SentencePooling",
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
