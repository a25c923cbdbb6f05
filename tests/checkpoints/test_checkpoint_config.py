"""What config.json of a folder says."""

import json

import numpy as np
import pytest

from tfnlp.checkpoints import load_model, read_config, save_model
from tfnlp.models import RecurrentTranslatorConfig, build_model
from tfnlp.utils.errors import InputError

LABELS = {"0": "a", "1": "b", "2": "c"}


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"model_type": "gpt9"}, "model_type=gpt9"),
        ({"hidden_act": "mish"}, "hidden_act=mish"),
        ({"position_embedding_type": "relative_key"}, "'absolute'"),
        ({"num_attention_heads": 0}, "num_heads=0"),
        ({"id2label": LABELS}, "3 classes"),
        ({"id2label": ["a", "b"]}, "id2label"),
        ({"id2label": {"0": "a", "1": "a"}}, "twice"),
        ({"problem_type": "multi_label_classification"}, "several labels"),
    ],
)
def test_configs_of_other_models_and_labels_are_named(fields, word, saved):
    path = saved / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    with pytest.raises(InputError, match=rf"config\.json.*{word}"):
        load_model(saved, "classifier")


def test_one_label_a_text_starts_a_new_head_on_several(one_layer, tmp_path):
    several = build_model(one_layer, "multi_label_classifier", 2)
    save_model(several, tmp_path, ["bad", "good"])
    for head, is_kept in (("classifier", False), ("multi_label_classifier", True)):
        loaded = load_model(tmp_path, head, 2)
        first, last = (
            np.array(w) for w in (loaded.weights[0], loaded.get_layer("classifier").kernel)
        )
        np.testing.assert_array_equal(first, several.weights[0])
        assert np.array_equal(last, several.get_layer("classifier").kernel) == is_kept


def test_missing_and_broken_configs_are_named(saved):
    for content in ("{", "[" * 100_000):
        (saved / "config.json").write_text(content)
        with pytest.raises(InputError, match="not valid JSON"):
            load_model(saved)
    (saved / "config.json").unlink()
    with pytest.raises(InputError, match=r"config\.json is missing"):
        load_model(saved)


@pytest.mark.parametrize("distance", [-1, 0])
def test_a_deberta_without_a_largest_distance_has_that_of_its_table(distance, tmp_path):
    fields = {"model_type": "deberta-v2", "max_position_embeddings": 24, "hidden_size": 32}
    fields |= {"num_attention_heads": 4, "relative_attention": True, "pos_att_type": ["c2p"]}
    fields |= {"max_relative_positions": distance, "position_buckets": distance}
    (tmp_path / "config.json").write_text(json.dumps(fields), encoding="utf-8")
    config = read_config(tmp_path)
    assert (config.max_distance, config.num_buckets, config.max_length) == (24, None, 24)
    fields |= {"max_relative_positions": 1, "position_buckets": -1}
    (tmp_path / "config.json").write_text(json.dumps(fields), encoding="utf-8")
    assert read_config(tmp_path).max_distance == 1


def test_distances_are_unlimited_where_none_is_the_largest(tmp_path):
    for kind, distance in (("transfo-xl", -1), ("xlnet", 0)):
        fields = {"model_type": kind, "clamp_len": distance}
        (tmp_path / "config.json").write_text(json.dumps(fields), encoding="utf-8")
        assert read_config(tmp_path).clamp_length is None


@pytest.mark.parametrize("attention", [None, "dot"])
def test_a_translator_without_attention_is_read_as_one(attention, tmp_path):
    config = RecurrentTranslatorConfig(20, num_layers=1, hidden_dim=4, attention=attention)
    save_model(build_model(config, "sequence_to_sequence"), tmp_path)
    assert read_config(tmp_path) == config
