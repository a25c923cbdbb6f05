"""Configs of all families: saving, and fields that do not fit each other."""

import json
import subprocess
import sys

import pytest

from tfnlp.configs import (
    ENCODER_DECODERS,
    FAMILIES,
    SIZES,
    AlbertConfig,
    BertConfig,
    DebertaV2Config,
    ElectraConfig,
    Gpt2Config,
    GptConfig,
    ModernBertConfig,
    RecurrentConfig,
    RecurrentTranslatorConfig,
    RobertaConfig,
    TransformerConfig,
    TransformerXLConfig,
    XLNetConfig,
    check_head,
    family_name,
)
from tfnlp.utils.errors import InputError


def test_configs_come_back_from_json():
    configs = [*SIZES.values(), *(kind() for kind in (FAMILIES | ENCODER_DECODERS).values())]
    for config in configs:
        fields = json.loads(json.dumps(config.get_config()))
        assert type(config).from_config(fields) == config
    assert {family_name(config) for config in configs} >= {"bert", "deberta_v2", "recurrent"}


@pytest.mark.parametrize(
    ("config", "head", "word"),
    [
        (BertConfig, "parser", "'parser'"),
        (GptConfig, "masked_lm", "'gpt'"),
        (TransformerConfig, "tagger", "sequence_to_sequence"),
        (RobertaConfig, "pretraining", "'pretraining'"),
        (BertConfig, "tagger", "num_classes=None"),
    ],
)
def test_heads_that_a_family_cannot_have_are_refused(config, head, word):
    with pytest.raises(InputError, match=word):
        check_head(config(), head)


WITHOUT_TIE = {"enhanced_mask_decoder": True, "tie_embeddings": False}


@pytest.mark.parametrize(
    ("config", "fields", "word"),
    [
        (BertConfig, {"num_heads": 5}, "num_heads=5"),
        (BertConfig, {"head_dim": 0}, "head_dim=0"),
        (XLNetConfig, {"head_dim": 64}, "head_dim=64"),
        (Gpt2Config, {"head_dim": 8}, "head_dim=8"),
        (AlbertConfig, {"num_groups": 5}, "num_groups=5"),
        (DebertaV2Config, WITHOUT_TIE, "tie_embeddings=True"),
        (ModernBertConfig, {"classifier_pooling": "max"}, "classifier_pooling='max'"),
        (ModernBertConfig, {"hidden_dim": 36}, "hidden_dim=36"),
        (ModernBertConfig, {"local_attention": 1}, "local_attention=1"),
        (TransformerXLConfig, {"memory_length": None}, "memory_length"),
        (TransformerConfig, {"num_decoder_heads": 3}, "num_decoder_heads=3"),
        (TransformerConfig, {"target_vocabulary_size": 15}, "target_vocabulary_size=15"),
        (RecurrentConfig, {"cell": "elman"}, "cell=elman"),
        (RecurrentConfig, {"hidden_dim": 15, "bidirectional": True}, "hidden_dim=15"),
        (RecurrentTranslatorConfig, {"attention": "luong"}, "attention=luong"),
        (RecurrentTranslatorConfig, {"reverse_source": True}, "reverse_source=True"),
    ],
)
def test_fields_that_do_not_fit_are_refused(config, fields, word):
    with pytest.raises(InputError, match=word):
        config(**fields)


def test_dropouts_and_activations_of_heads():
    assert BertConfig().head_dropout == 0.1
    assert BertConfig(classifier_dropout=0.3).head_dropout == 0.3
    assert RecurrentConfig().head_dropout == 0.0
    assert XLNetConfig().tagger_dropout == 0.0
    assert ElectraConfig(activation="relu").lm_activation == "gelu"
    assert GptConfig(activation="relu").lm_activation == "relu"


def test_configs_load_no_framework():
    code = (
        "import sys, tfnlp.configs; tfnlp.configs.config_by_name('lstm'); "
        "print({'keras', 'tensorflow'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"
