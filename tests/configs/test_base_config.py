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
    ("config", "head", "message"),
    [
        (BertConfig, "parser", "head='parser' does not fit the family 'bert'; use one of masked"),
        (GptConfig, "masked_lm", "head='masked_lm' does not fit the family 'gpt'; use one of ca"),
        (RecurrentConfig, "discriminator", "does not fit the family 'recurrent'"),
        (TransformerConfig, "tagger", "'transformer'; use one of sequence_to_sequence.$"),
        (RobertaConfig, "pretraining", "head='pretraining' does not fit the family 'roberta'"),
        (BertConfig, "tagger", "num_classes=None must be at least 1 for head='tagger'"),
    ],
)
def test_heads_that_a_family_cannot_have_are_refused(config, head, message):
    with pytest.raises(InputError, match=message):
        check_head(config(), head)


@pytest.mark.parametrize(
    ("config", "fields", "message"),
    [
        (BertConfig, {"num_heads": 5}, "num_heads=5 does not divide hidden_dim=768"),
        (BertConfig, {"head_dim": 0}, "head_dim=0 must be None, or in families with BERT's"),
        (XLNetConfig, {"head_dim": 64}, "head_dim=64 must be None, or in families with BERT's"),
        (AlbertConfig, {"num_groups": 5}, "num_groups=5 does not divide num_layers=12"),
        (
            DebertaV2Config,
            {"enhanced_mask_decoder": True, "tie_embeddings": False},
            "enhanced_mask_decoder=True needs tie_embeddings=True",
        ),
        (ModernBertConfig, {"classifier_pooling": "max"}, "classifier_pooling='max' must be one"),
        (ModernBertConfig, {"hidden_dim": 36}, "num_heads=12 must divide hidden_dim=36 into even"),
        (ModernBertConfig, {"local_attention": 1}, "local_attention=1 must be at least 2"),
        (TransformerXLConfig, {"memory_length": None}, "same_length needs a memory_length"),
        (TransformerConfig, {"num_decoder_heads": 3}, "num_decoder_heads=3 does not divide"),
        (
            TransformerConfig,
            {"target_vocabulary_size": 15},
            "target_vocabulary_size=15 needs share_embeddings=False",
        ),
        (RecurrentConfig, {"cell": "elman"}, "cell=elman is unknown; use one of rnn, lstm, gru"),
        (
            RecurrentConfig,
            {"hidden_dim": 15, "bidirectional": True},
            "hidden_dim=15 must be even with bidirectional=True",
        ),
        (
            RecurrentTranslatorConfig,
            {"attention": "luong"},
            "attention=luong is unknown; use one of dot, general",
        ),
        (
            RecurrentTranslatorConfig,
            {"reverse_source": True},
            "reverse_source=True has no effect with bidirectional",
        ),
    ],
)
def test_fields_that_do_not_fit_are_refused(config, fields, message):
    with pytest.raises(InputError, match=message):
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
