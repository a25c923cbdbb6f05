"""Logits at masked positions are those of the whole model."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.models import AlbertConfig, DebertaV2Config, build_model
from tfnlp.objectives import logits_at_positions, predict_at_positions

DECODER = {"max_length": 16, "attention_dropout": 0.0, "enhanced_mask_decoder": True}


@pytest.mark.parametrize("family", ["untied", "albert"])
def test_logits_at_positions_are_those_of_the_whole_text(family, tiny_config, random_inputs):
    sizes = {"vocabulary_size": 28, "num_layers": 2, "num_heads": 2, "hidden_dim": 16}
    sizes |= {"intermediate_dim": 32, "initializer_range": 0.5}
    config = {
        "untied": dataclasses.replace(tiny_config, tie_embeddings=False),
        "albert": AlbertConfig(**sizes, embedding_dim=8),
    }[family]
    model = build_model(config, "masked_lm", hidden_states=True)
    few = predict_at_positions(model)
    inputs = random_inputs(3, 9, 28)
    positions = np.array([[1, 4], [0, 8], [2, 0]], "int32")
    found, whole = few(inputs | {"masked_positions": positions}), model(inputs)
    expected = np.take_along_axis(whole["logits"].numpy(), positions[:, :, None], 1)
    np.testing.assert_allclose(found["logits"], expected, atol=2e-5)
    assert found.keys() == whole.keys() and len(few.trainable_variables) == len(
        model.trainable_variables
    )
    np.testing.assert_allclose(found["hidden_states"][1], whole["hidden_states"][1], atol=1e-5)


@pytest.mark.parametrize(
    ("family", "head", "shortened"),
    [
        ("bert", "masked_lm", True),
        ("one layer", "pretraining", True),
        ("albert", "pretraining", False),
        ("deberta_v2", "masked_lm", False),
    ],
)
def test_the_trained_model_has_the_logits_and_gradients_of_the_whole_model(
    family, head, shortened, tiny_config, random_inputs
):
    sizes = {"vocabulary_size": 28, "num_layers": 2, "num_heads": 2, "hidden_dim": 16}
    sizes |= {"intermediate_dim": 32, "initializer_range": 0.5, "dropout": 0.0}
    plain = dataclasses.replace(tiny_config, dropout=0.0, attention_dropout=0.0)
    config = {
        "bert": plain,
        "one layer": dataclasses.replace(plain, num_layers=1),
        "albert": AlbertConfig(**sizes, embedding_dim=8, classifier_dropout=0.0),
        "deberta_v2": DebertaV2Config(**sizes | DECODER),
    }[family]
    # A model that gives more than is asked for.
    model = build_model(config, head, hidden_states=True, attention_scores=True)
    trained = logits_at_positions(model)
    inputs = random_inputs(3, 9, 28)
    positions = np.array([[1, 4], [0, 8], [2, 0]], "int32")
    pull = np.random.default_rng(0).normal(size=(3, 2, 28)).astype("float32")

    def gradients(run):
        with tf.GradientTape() as tape:
            found = run()
            total = tf.reduce_sum(found["logits"] * pull)
            total += sum(tf.reduce_sum(x * [1.0, -2.0]) for k, x in found.items() if k[0] == "p")
        return found, tape.gradient(total, [v.value for v in model.trainable_variables])

    def whole():
        found = model(inputs, training=True)
        logits = tf.gather(found["logits"], positions, batch_dims=1)
        return {"logits": logits} | {k: x for k, x in found.items() if k == "pair_logits"}

    given = inputs | {"masked_positions": positions}
    found, moved = gradients(lambda: trained(given, training=True))
    expected, expected_moved = gradients(whole)
    assert found.keys() == expected.keys()
    for key, x in expected.items():
        np.testing.assert_allclose(found[key], x, atol=2e-5)
    for variable, a, b in zip(model.trainable_variables, moved, expected_moved, strict=True):
        a, b = (np.asarray(tf.convert_to_tensor(x)) for x in (a, b))
        np.testing.assert_allclose(a, b, atol=1e-4 * max(1, abs(b).max()), err_msg=variable.path)
    assert any(x.name == "states_at_positions" for x in trained.layers) == shortened
