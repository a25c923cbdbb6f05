"""Families and sizes that have a name, as data: `SIZES["tinybert_4l_312"]` is a config."""

import collections
import dataclasses

from tfnlp.utils.errors import InputError, unknown_name
from tfnlp.utils.lazy_dictionary import LazyDictionary

FAMILIES = LazyDictionary(
    {
        "bert": "tfnlp.configs:BertConfig",
        "roberta": "tfnlp.configs:RobertaConfig",
        "distilbert": "tfnlp.configs:DistilBertConfig",
        "albert": "tfnlp.configs:AlbertConfig",
        "electra": "tfnlp.configs:ElectraConfig",
        "deberta": "tfnlp.configs:DebertaConfig",
        "deberta_v2": "tfnlp.configs:DebertaV2Config",
        "deberta_v3": "tfnlp.configs:DebertaV2Config",
        "xlnet": "tfnlp.configs:XLNetConfig",
        "transformer_xl": "tfnlp.configs:TransformerXLConfig",
        "gpt": "tfnlp.configs:GptConfig",
        "gpt2": "tfnlp.configs:Gpt2Config",
        "rnn": "tfnlp.configs:RecurrentConfig",
        "lstm": "tfnlp.configs:RecurrentConfig",
        "gru": "tfnlp.configs:RecurrentConfig",
        "textcnn": "tfnlp.configs:TextCnnConfig",
        "bag": "tfnlp.configs:BagConfig",
        "elmo": "tfnlp.configs:ElmoConfig",
    }
)
# Families that make a text of another, which have no heads of encoders.
ENCODER_DECODERS = LazyDictionary(
    {
        "transformer": "tfnlp.configs:TransformerConfig",
        "recurrent_translator": "tfnlp.configs:RecurrentTranslatorConfig",
    }
)
# The first four fields of a config.
_SHAPE = ("num_layers", "num_heads", "hidden_dim", "intermediate_dim")
# Defaults of a transformer without a size; other families have those of their configs.
SMALL = dict(zip(_SHAPE, (4, 4, 256, 1024), strict=True))


class _Sizes(collections.UserDict):
    """Configs by name, each built when it is asked for."""

    def __getitem__(self, name):
        family, *shape = self.data[name]
        fields = shape.pop() if shape and isinstance(shape[-1], dict) else {}
        return (FAMILIES | ENCODER_DECODERS)[family](
            **dict(zip(_SHAPE, shape, strict=False)) | fields
        )


# Family, layers, heads, width, feed-forward width (by default those of the config), other fields.
SIZES = _Sizes(
    {
        "bert_base": ("bert",),
        "bert_large": ("bert", 24, 16, 1024, 4096),
        "bert_tiny": ("bert", 2, 2, 128, 512),
        "bert_mini": ("bert", 4, 4, 256, 1024),
        "bert_small": ("bert", 4, 8, 512, 2048),
        "bert_medium": ("bert", 8, 8, 512, 2048),
        "tinybert_4l_312": ("bert", 4, 12, 312, 1200),
        "tinybert_6l_768": ("bert", 6),
        "minilm_6l_384": ("bert", 6, 12, 384, 1536),
        "minilm_12l_384": ("bert", 12, 12, 384, 1536),
        "roberta_base": ("roberta",),
        "roberta_large": ("roberta", 24, 16, 1024, 4096),
        "distilbert_base": ("distilbert",),
        "albert_base": ("albert",),
        "albert_large": ("albert", 24, 16, 1024, 4096),
        "albert_xlarge": ("albert", 24, 16, 2048, 8192),
        "albert_xxlarge": ("albert", 12, 64, 4096, 16384, {"activation": "gelu"}),
        "electra_small": ("electra",),
        # The generator is narrower than the discriminator (Clark et al. 2020, section 3.2).
        "electra_small_generator": ("electra",),
        "electra_base": ("electra", 12, 12, 768, 3072, {"embedding_dim": 768}),
        "electra_base_generator": ("electra", 12, 4, 256, 1024, {"embedding_dim": 768}),
        "electra_large": ("electra", 24, 16, 1024, 4096, {"embedding_dim": 1024}),
        "deberta_base": ("deberta",),
        "deberta_large": ("deberta", 24, 16, 1024, 4096),
        "deberta_v2_xlarge": (
            *("deberta_v2", 24, 24, 1536, 6144),
            {"convolution_size": 3, "convolution_activation": "gelu"},
        ),
        "deberta_v3_xsmall": ("deberta_v3", 12, 6, 384, 1536),
        "deberta_v3_small": ("deberta_v3", 6),
        "deberta_v3_base": ("deberta_v3",),
        "deberta_v3_large": ("deberta_v3", 24, 16, 1024, 4096),
        "xlnet_base": ("xlnet",),
        "xlnet_large": ("xlnet", 24, 16, 1024, 4096),
        "transformer_base": ("transformer",),
        "transformer_big": ("transformer", 6, 16, 1024, 4096, {"dropout": 0.3}),
        # For some 30,000 pairs (Wu et al. 2021, 'Good for Misconceived Reasons', section 4.1).
        "transformer_tiny": (
            *("transformer", 4, 4, 128, 256),
            {"vocabulary_size": 10000, "dropout": 0.3},
        ),
        "transformer_xl_wt103": ("transformer_xl",),
        # Trained on the characters of enwik8 (Dai et al. 2019, section 4.1).
        "transformer_xl_enwik8": (
            *("transformer_xl", 12, 8, 512, 2048),
            {"vocabulary_size": 204, "cutoffs": (), "div_value": 1}
            | {"memory_length": 512, "clamp_length": 820},
        ),
        "gpt": ("gpt",),
        "gpt2": ("gpt2",),
        "gpt2_medium": ("gpt2", 24, 16, 1024, 4096),
        "gpt2_large": ("gpt2", 36, 20, 1280, 5120),
        "gpt2_xl": ("gpt2", 48, 25, 1600, 6400),
    }
)


def config_by_name(family=None, size=None, **fields):
    """Return the config of a named family or size.

    Args:
        family: one of `FAMILIES` or `ENCODER_DECODERS`; that of the size if None, "bert"
            without either. A transformer alone has 4 layers of width 256.
        size: one of `SIZES`; None for none.
        fields: of the config, instead of the size's own; None for those that stay. A
            `hidden_dim` alone has an `intermediate_dim` of four times as much.

    Raises:
        InputError: for an unknown family or size, a size of another family, and fields that the
            family lacks, or that do not fit each other.
    """
    families = FAMILIES | ENCODER_DECODERS
    family, size = _checked_name("family", family, families), _checked_name("size", size, SIZES)
    kind = families[family or "bert"]
    config = SIZES[size] if size else kind(**SMALL) if kind.attends else kind()
    if family and type(config) is not kind:
        raise InputError(f"size={size} is of another family than family={family}; leave one out.")
    fields = {name: value for name, value in fields.items() if value is not None}
    config_fields = {field.name for field in dataclasses.fields(config)}
    if "hidden_dim" in fields and "intermediate_dim" in config_fields:
        fields = {"intermediate_dim": 4 * fields["hidden_dim"]} | fields
    if "cell" in config_fields and family in FAMILIES:  # it is named by its cell
        fields = {"cell": family} | fields
    for name in fields.keys() - config_fields:
        kind = family or size or "bert"
        raise InputError(f"{name}={fields[name]} is no field of the family {kind}; leave it out.")
    if "vocabulary_size" in fields and config.adaptive_softmax:
        # Clusters of tokens that there are not.
        kept = tuple(c for c in config.cutoffs if c < fields["vocabulary_size"])
        fields = {"cutoffs": kept} | fields
    return dataclasses.replace(config, **fields)


def _checked_name(argument, name, names):
    """Return a name with underscores for hyphens; raise an InputError unless it is in `names`."""
    underscored = name and name.replace("-", "_")
    if name is not None and underscored not in names:
        raise unknown_name(argument, name, names)
    return underscored
