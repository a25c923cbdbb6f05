"""ERNIE: built from a BERT, its entities, its inputs and its folder."""

import dataclasses

import keras
import numpy as np
import pytest

from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import RobertaConfig, build_model, with_entities
from tfnlp.utils.errors import InputError


def vectors(count=5, width=8, seed=0):
    return np.random.default_rng(seed).normal(size=(count, width)).astype("float32")


@pytest.fixture
def bert(tiny_config):
    return build_model(tiny_config, "classifier", 3, hidden_states=True)


@pytest.fixture
def inputs(random_inputs):
    inputs = random_inputs(3, 9, 28)
    ids = np.random.default_rng(1).integers(0, 6, (3, 9)).astype("int32")
    return inputs | {"entity_ids": ids * inputs["padding_mask"]}


def test_without_entities_states_are_berts(bert, inputs):
    """But for the first token after a second block, as the first one makes an entity of it."""
    text = {name: x for name, x in inputs.items() if name != "entity_ids"}
    none = inputs | {"entity_ids": np.zeros((3, 9), "int32")}
    expected = bert(text)["sequence_output"]
    for layers in (1, 2):
        model, first = with_entities(bert, vectors(), layers), layers - 1
        found = model(none)["sequence_output"]
        np.testing.assert_allclose(found[:, first:], expected[:, first:], atol=1e-5)
        assert np.abs(found - model(inputs)["sequence_output"])[:, 1:].max() > 1e-2


def test_the_first_token_sees_the_entities_of_its_text(bert, inputs):
    model = with_entities(bert, vectors(), 1)
    first = model(inputs)["sequence_output"][:, 0]
    ids = inputs["entity_ids"]
    moved = model(inputs | {"entity_ids": np.where(ids > 0, 6 - ids, 0)})["sequence_output"]
    assert np.abs(first - moved[:, 0]).max(1).min() > 1e-4


def test_vectors_of_entities_are_not_trained_and_last_outputs_neither(bert):
    model = with_entities(bert, vectors())
    table = model.get_layer("entity_embeddings")
    np.testing.assert_array_equal(table.embeddings[1:], vectors())
    assert not np.any(table.embeddings[0])
    untrained = {v.path for v in model.non_trainable_variables if "seed" not in v.path}
    assert untrained == {
        "entity_embeddings/embeddings",
        *(f"encoder_2/feed_forward/entity_output/{name}" for name in ("kernel", "bias")),
        *(f"encoder_2/entity_feed_forward_norm/{name}" for name in ("gamma", "beta")),
    }


@pytest.mark.parametrize("head", ["chooser", "masked_lm"])
def test_folders_and_keras_files_keep_it(head, tiny_config, inputs, tmp_path):
    start = build_model(tiny_config, head)
    model = with_entities(start, vectors())
    if head == "chooser":
        inputs = {name: np.stack([x, x[:, ::-1]], 1) for name, x in inputs.items()}
    save_model(model, tmp_path / "folder")
    model.save(tmp_path / "model.keras")
    loaded = load_model(tmp_path / "folder", head)
    assert loaded.text_config == model.text_config
    again = keras.models.load_model(tmp_path / "model.keras")
    expected = model(inputs)
    for found in (loaded(inputs), again(inputs)):
        for name, x in expected.items():
            np.testing.assert_allclose(found[name], x, atol=1e-6, err_msg=name)


def test_bad_sizes_and_families_are_named(tiny_config, bert):
    fields = {f.name: getattr(tiny_config, f.name) for f in dataclasses.fields(tiny_config)}
    roberta = build_model(RobertaConfig(**fields | {"num_segments": 1}))
    for model, options, word in (
        (bert, {"num_layers": 4}, "num_knowledge_layers=4"),
        (bert, {"num_heads": 3}, "num_entity_heads=3"),
        (roberta, {}, "roberta"),
    ):
        with pytest.raises(InputError, match=word):
            with_entities(model, vectors(), **options)
