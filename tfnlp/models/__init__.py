"""Functional models: a config in, a `keras.Model` from named inputs to a dict out.

Decisions: docs/decisions/models.md.
"""

from tfnlp.configs.albert_config import AlbertConfig
from tfnlp.configs.bert_config import BertConfig, RobertaConfig
from tfnlp.configs.deberta_config import DebertaConfig, DebertaV2Config
from tfnlp.configs.distilbert_config import DistilBertConfig
from tfnlp.configs.electra_config import ElectraConfig
from tfnlp.configs.gpt_config import Gpt2Config, GptConfig
from tfnlp.configs.head_names import HEADS, MASKED_LMS
from tfnlp.configs.recurrent_config import RecurrentConfig
from tfnlp.configs.recurrent_translator_config import RecurrentTranslatorConfig
from tfnlp.configs.sizes import ENCODER_DECODERS, FAMILIES, SIZES, config_by_name
from tfnlp.configs.transformer_config import TransformerConfig
from tfnlp.configs.transformer_xl_config import TransformerXLConfig
from tfnlp.configs.xlnet_config import XLNetConfig
from tfnlp.models.build import build_model
from tfnlp.models.text_model import (
    TextModel,
    check_lengths,
    check_vocabulary,
    config_of,
    max_positions,
    submodel,
    token_axes,
)

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
