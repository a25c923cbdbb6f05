"""Functional models: a config in, a `keras.Model` from named inputs to a dict out.

Decisions: docs/decisions/models.md.
"""

from tfnlp.models.albert import AlbertConfig
from tfnlp.models.base_config import Pooling, TextConfig
from tfnlp.models.bert import BertConfig, RobertaConfig
from tfnlp.models.build import build_model
from tfnlp.models.deberta import DebertaConfig, DebertaV2Config
from tfnlp.models.distilbert import DistilBertConfig
from tfnlp.models.electra import ElectraConfig
from tfnlp.models.gpt import Gpt2Config, GptConfig
from tfnlp.models.heads import HEADS, MASKED_LMS
from tfnlp.models.recurrent import RecurrentConfig
from tfnlp.models.recurrent_translator import RecurrentTranslatorConfig
from tfnlp.models.sizes import ENCODER_DECODERS, FAMILIES, SIZES, config_by_name
from tfnlp.models.text_model import (
    TextModel,
    check_lengths,
    check_vocabulary,
    config_of,
    max_positions,
    submodel,
    token_axes,
)
from tfnlp.models.transformer import TransformerConfig
from tfnlp.models.transformer_xl import TransformerXLConfig
from tfnlp.models.xlnet import XLNetConfig

__all__ = [
    "ENCODER_DECODERS",
    "FAMILIES",
    "HEADS",
    "MASKED_LMS",
    "SIZES",
    "AlbertConfig",
    "BertConfig",
    "DebertaConfig",
    "DebertaV2Config",
    "DistilBertConfig",
    "ElectraConfig",
    "Gpt2Config",
    "GptConfig",
    "Pooling",
    "RecurrentConfig",
    "RecurrentTranslatorConfig",
    "RobertaConfig",
    "TextConfig",
    "TextModel",
    "TransformerConfig",
    "TransformerXLConfig",
    "XLNetConfig",
    "build_model",
    "check_lengths",
    "check_vocabulary",
    "config_by_name",
    "config_of",
    "max_positions",
    "submodel",
    "token_axes",
]
