"""Models that attend in blocks are the plain ones, with any head."""

import keras
import numpy as np
import pytest

from tests.models.small import sizes
from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import BertConfig, build_model, config_by_name

SMALL = sizes(vocabulary_size=40, num_layers=1, dropout=0.0, attention_dropout=0.0)
LENGTH = 7


def make_inputs():
    rng = np.random.default_rng(0)
    mask = np.ones((2, LENGTH), "int32")
    mask[0, 5:] = 0
    return {
        "token_ids": rng.integers(1, 40, (2, LENGTH)).astype("int32"),
        "segment_ids": rng.integers(0, 2, (2, LENGTH)).astype("int32"),
        "padding_mask": mask,
    }


@pytest.mark.parametrize(
    ("family", "head"),
    [
        ("albert", "classifier"),
        ("deberta_v2", "masked_lm"),
        ("gpt2", None),
        ("transformer_xl", None),
        ("xlnet", "permutation_lm"),
    ],
)
def test_in_blocks_a_model_is_the_plain_one(family, head):
    fields = {"enhanced_mask_decoder": True, "num_buckets": 4} if family == "deberta_v2" else {}
    config = config_by_name(family, **SMALL | fields)
    classes = 3 if head == "classifier" else None
    plain, model = (build_model(config, head, classes, block_size=size) for size in (None, 4))
    model.set_weights(plain.get_weights())
    assert (model.block_size, plain.block_size) == (4, None)
    inputs = make_inputs()
    if head == "permutation_lm":
        inputs["permutation_order"] = np.stack([np.arange(LENGTH, dtype="int32")] * 2)
        inputs["target_mapping"] = np.stack([np.eye(LENGTH, dtype="int32")[2:5]] * 2)
    key = "logits" if head else "sequence_output"
    np.testing.assert_allclose(model(inputs)[key], plain(inputs)[key], rtol=1e-4, atol=1e-4)


def test_keras_files_and_clones_stay_in_blocks_and_folders_do_not(tmp_path):
    config = config_by_name("albert", **SMALL)
    model = build_model(config, "classifier", 3, block_size=4)
    expected = model(make_inputs())["logits"]
    model.save(tmp_path / "model.keras")
    save_model(model, tmp_path)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    in_blocks = [keras.models.load_model(tmp_path / "model.keras"), clone]
    in_blocks.append(load_model(tmp_path, "classifier", block_size=4))
    for again in (*in_blocks, load_model(tmp_path, "classifier")):
        assert again.block_size == (4 if again in in_blocks else None)
        assert again.text_config == config
        np.testing.assert_allclose(again(make_inputs())["logits"], expected, atol=1e-6)


@pytest.mark.parametrize("family", ["albert", "xlnet"])
def test_scores_are_computed_only_on_request(family):
    config = config_by_name(family, **SMALL)
    for asked in (False, True):
        model = build_model(config, attention_scores=asked)
        assert ("attention_scores" in model.output) is asked
        outputs = keras.tree.flatten([layer.output for layer in model.layers])
        assert any(x.shape[1] == 2 and len(x.shape) == 4 for x in outputs) is asked


@pytest.mark.parametrize(("size", "scores"), [(4, True), (0, False), (2.5, False)])
def test_blocks_without_scores_or_size_are_refused(size, scores):
    with pytest.raises(ValueError, match=f"block_size={size}"):
        build_model(BertConfig(**SMALL), block_size=size, attention_scores=scores)
