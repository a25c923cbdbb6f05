"""Families and sizes that have a name, as data: `SIZES["tinybert_4l_312"]` is a config."""

import dataclasses

from tfnlp.configs.albert_config import AlbertConfig
from tfnlp.configs.bert_config import BertConfig, RobertaConfig
from tfnlp.configs.deberta_config import DebertaConfig, DebertaV2Config
from tfnlp.configs.distilbert_config import DistilBertConfig
from tfnlp.configs.electra_config import ElectraConfig
from tfnlp.configs.gpt_config import Gpt2Config, GptConfig
from tfnlp.configs.recurrent_config import CELLS, RecurrentConfig
from tfnlp.configs.recurrent_translator_config import RecurrentTranslatorConfig
from tfnlp.configs.transformer_config import TransformerConfig
from tfnlp.configs.transformer_xl_config import TransformerXLConfig
from tfnlp.configs.xlnet_config import XLNetConfig
from tfnlp.utils.errors import InputError, unknown_name

FAMILIES = {
    "bert": BertConfig,
    "roberta": RobertaConfig,
    "distilbert": DistilBertConfig,
    "albert": AlbertConfig,
    "electra": ElectraConfig,
    "deberta": DebertaConfig,
    "deberta_v2": DebertaV2Config,
    "deberta_v3": DebertaV2Config,
    "xlnet": XLNetConfig,
    "transformer_xl": TransformerXLConfig,
    "gpt": GptConfig,
    "gpt2": Gpt2Config,
    **dict.fromkeys(CELLS, RecurrentConfig),
}

# Families that make a text of another, which have no heads of encoders.
ENCODER_DECODERS = {
    "transformer": TransformerConfig,
    "recurrent_translator": RecurrentTranslatorConfig,
}

# Defaults of a transformer without a size; recurrent networks have 2 layers of width 256.
SMALL = {"num_layers": 4, "num_heads": 4, "hidden_dim": 256, "intermediate_dim": 1024}

_LARGE = {"num_layers": 24, "num_heads": 16, "hidden_dim": 1024, "intermediate_dim": 4096}

SIZES = {
    "bert_base": BertConfig(),
    "bert_large": BertConfig(**_LARGE),
    "bert_tiny": BertConfig(num_layers=2, num_heads=2, hidden_dim=128, intermediate_dim=512),
    "bert_mini": BertConfig(num_layers=4, num_heads=4, hidden_dim=256, intermediate_dim=1024),
    "bert_small": BertConfig(num_layers=4, num_heads=8, hidden_dim=512, intermediate_dim=2048),
    "bert_medium": BertConfig(num_layers=8, num_heads=8, hidden_dim=512, intermediate_dim=2048),
    "tinybert_4l_312": BertConfig(num_layers=4, hidden_dim=312, intermediate_dim=1200),
    "tinybert_6l_768": BertConfig(num_layers=6),
    "minilm_6l_384": BertConfig(num_layers=6, hidden_dim=384, intermediate_dim=1536),
    "minilm_12l_384": BertConfig(num_layers=12, hidden_dim=384, intermediate_dim=1536),
    "roberta_base": RobertaConfig(),
    "roberta_large": RobertaConfig(**_LARGE),
    "distilbert_base": DistilBertConfig(),
    "albert_base": AlbertConfig(),
    "albert_large": AlbertConfig(**_LARGE),
    "albert_xlarge": AlbertConfig(
        num_layers=24, num_heads=16, hidden_dim=2048, intermediate_dim=8192
    ),
    "albert_xxlarge": AlbertConfig(
        num_layers=12, num_heads=64, hidden_dim=4096, intermediate_dim=16384, activation="gelu"
    ),
    "electra_small": ElectraConfig(),
    # The generator is narrower than the discriminator (Clark et al. 2020, section 3.2).
    "electra_small_generator": ElectraConfig(),
    "electra_base": ElectraConfig(
        num_heads=12, hidden_dim=768, intermediate_dim=3072, embedding_dim=768
    ),
    "electra_base_generator": ElectraConfig(
        num_heads=4, hidden_dim=256, intermediate_dim=1024, embedding_dim=768
    ),
    "electra_large": ElectraConfig(embedding_dim=1024, **_LARGE),
    "deberta_base": DebertaConfig(),
    "deberta_large": DebertaConfig(**_LARGE),
    "deberta_v2_xlarge": DebertaV2Config(
        num_layers=24,
        num_heads=24,
        hidden_dim=1536,
        intermediate_dim=6144,
        convolution_size=3,
        convolution_activation="gelu",
    ),
    "deberta_v3_xsmall": DebertaV2Config(num_heads=6, hidden_dim=384, intermediate_dim=1536),
    "deberta_v3_small": DebertaV2Config(num_layers=6),
    "deberta_v3_base": DebertaV2Config(),
    "deberta_v3_large": DebertaV2Config(**_LARGE),
    "xlnet_base": XLNetConfig(),
    "xlnet_large": XLNetConfig(**_LARGE),
    "transformer_base": TransformerConfig(),
    "transformer_big": TransformerConfig(
        num_heads=16, hidden_dim=1024, intermediate_dim=4096, dropout=0.3
    ),
    # For some 30,000 pairs (Wu et al. 2021, 'Good for Misconceived Reasons', section 4.1).
    "transformer_tiny": TransformerConfig(
        vocabulary_size=10000,
        num_layers=4,
        num_heads=4,
        hidden_dim=128,
        intermediate_dim=256,
        dropout=0.3,
    ),
    "transformer_xl_wt103": TransformerXLConfig(),
    # Trained on the characters of enwik8 (Dai et al. 2019, section 4.1).
    "transformer_xl_enwik8": TransformerXLConfig(
        vocabulary_size=204,
        num_layers=12,
        num_heads=8,
        hidden_dim=512,
        intermediate_dim=2048,
        cutoffs=(),
        div_value=1,
        memory_length=512,
        clamp_length=820,
    ),
    "gpt": GptConfig(),
    "gpt2": Gpt2Config(),
    "gpt2_medium": Gpt2Config(**_LARGE),
    "gpt2_large": Gpt2Config(num_layers=36, num_heads=20, hidden_dim=1280, intermediate_dim=5120),
    "gpt2_xl": Gpt2Config(num_layers=48, num_heads=25, hidden_dim=1600, intermediate_dim=6400),
}


def config_by_name(family=None, size=None, **fields):
    """Return the config of a named family or size.

    Args:
        family: one of `FAMILIES` or `ENCODER_DECODERS`; that of the size if None, "bert"
            without either. A family alone has 4 layers of width 256, a recurrent network 2.
        size: one of `SIZES`; None for none.
        fields: of the config, instead of the size's own; None for those that stay. A
            `hidden_dim` alone has an `intermediate_dim` of four times as much.

    Raises:
        InputError: for an unknown family or size, a size of another family, and fields that the
            family lacks, or that do not fit each other.
    """
    if family is not None:
        family = _checked_name("family", family, FAMILIES | ENCODER_DECODERS)
    if size is not None:
        size = _checked_name("size", size, SIZES)
    kind = (FAMILIES | ENCODER_DECODERS)[family or "bert"]
    config = SIZES[size] if size else kind() if kind.recurrent else kind(**SMALL)
    if family and type(config) is not kind:
        raise InputError(f"size={size} is of another family than family={family}; leave one out.")
    fields = {name: value for name, value in fields.items() if value is not None}
    config_fields = {field.name for field in dataclasses.fields(config)}
    if "hidden_dim" in fields and "intermediate_dim" in config_fields:
        fields = {"intermediate_dim": 4 * fields["hidden_dim"]} | fields
    if family in CELLS:
        fields = {"cell": family} | fields
    for name in fields.keys() - config_fields:
        raise InputError(
            f"{name}={fields[name]} is no field of the family {family or size}; leave it out."
        )
    if "vocabulary_size" in fields and config.adaptive_softmax:
        # Clusters of tokens that there are not.
        kept = tuple(c for c in config.cutoffs if c < fields["vocabulary_size"])
        fields = {"cutoffs": kept} | fields
    return dataclasses.replace(config, **fields)


def _checked_name(argument, name, names):
    """Return a name with underscores for hyphens; raise an InputError unless it is in `names`."""
    underscored = name.replace("-", "_")
    if underscored not in names:
        raise unknown_name(argument, name, names)
    return underscored
