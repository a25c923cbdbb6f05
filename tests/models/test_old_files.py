"""Models that earlier versions saved are called as blocks are today."""

import json

import keras
import numpy as np
import pytest

from tfnlp.models import DebertaV2Config, TextModel, XLNetConfig, build_model

SIZES = {
    "vocabulary_size": 40,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 24,
}


def as_before(config):
    """The config of a model as it was written before `TwoStreamBlock` and `value`."""
    for layer in config["layers"]:
        if layer["class_name"] not in ("EncoderBlock", "TwoStreamBlock"):
            continue
        for node in layer["inbound_nodes"]:
            args, kwargs = node["args"], node["kwargs"]
            if "value" in kwargs:
                kwargs["query_states"], args[0] = args[0], kwargs.pop("value")
            if len(args) == 2:
                further = {"query_stream": args.pop()}
                for name in ("query_attention_mask", "target_mapping", "segment_mask", "memory"):
                    further[name] = kwargs.pop(name)
                kwargs["attention_arguments"] = further
        layer |= {
            "module": "tfnlp.layers.blocks.encoder_block",
            "class_name": "EncoderBlock",
            "registered_name": "tfnlp>EncoderBlock",
        }
    return config


@pytest.fixture(params=["two streams", "mask decoder"])
def model(request):
    if request.param == "two streams":
        return build_model(XLNetConfig(**SIZES), "permutation_lm", memory=True)
    config = DebertaV2Config(
        max_length=9, max_distance=8, num_buckets=4, enhanced_mask_decoder=True, **SIZES
    )
    return build_model(config, "masked_lm")


def test_a_model_of_before_gives_the_same(model, tmp_path):
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 40, (2, 7))
    inputs = {"token_ids": ids, "segment_ids": ids % 2, "padding_mask": 0 * ids + 1}
    if "memory" in model.input:
        order = np.stack([rng.permutation(7), rng.permutation(7)])
        inputs["permutation_order"] = order
        inputs["target_mapping"] = np.eye(7, dtype="int32")[order[:, :3]]
        inputs["memory"] = rng.normal(size=(2, 2, 3, 16)).astype("float32")
    old = as_before(json.loads(model.to_json())["config"])
    text = str(old)
    assert ("query_stream" in text) != ("query_states" in text) and "TwoStreamBlock" not in text
    loaded = TextModel.from_config(old)
    loaded.set_weights(model.get_weights())
    assert [w.path for w in loaded.weights] == [w.path for w in model.weights]
    # Files keep weights by the name of the class.
    loaded.save(tmp_path / "old.keras")
    again = keras.models.load_model(tmp_path / "old.keras")
    expected = model(inputs)["logits"]
    for found in (loaded, again):
        np.testing.assert_allclose(found(inputs)["logits"], expected, atol=1e-6)
    names = {type(layer).__name__ for layer in again.layers if "encoder_" in layer.name}
    assert names == {"EncoderBlock"}
