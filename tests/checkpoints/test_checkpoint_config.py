"""What config.json of a folder says."""

import json

import pytest

from tfnlp.checkpoints import load_model, read_config
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
