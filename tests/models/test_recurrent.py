import dataclasses

import numpy as np
import pytest

from tests.models.recurrent_witness import next_logits, read, weights_of
from tfnlp.models import RecurrentConfig, build_model

SIZES = {"vocabulary_size": 60, "num_layers": 2, "hidden_dim": 16, "initializer_range": 0.5}


def inputs_of(ids, mask=None):
    ids = np.asarray(ids, "int32")
    mask = np.ones_like(ids) if mask is None else np.asarray(mask, "int32")
    return {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}


def with_random_biases(model, seed=0):
    """Biases begin as zeros and ones, which would hide where they stand."""
    rng = np.random.default_rng(seed)
    for weight in model.weights:
        if weight.path.endswith("bias"):
            weight.assign(rng.normal(0, 0.3, weight.shape))
    return model


@pytest.mark.parametrize(
    ("cell", "bidirectional"), [("rnn", True), ("lstm", True), ("gru", True), ("gru", False)]
)
def test_classes_are_those_of_numpy_and_padding_changes_nothing(cell, bidirectional):
    config = RecurrentConfig(cell=cell, bidirectional=bidirectional, **SIZES)
    model = with_random_biases(build_model(config, "classifier", 3))
    weights, ids = weights_of(model), np.random.default_rng(0).integers(0, 60, (3, 7))
    mask = np.ones((3, 7))
    mask[1, 4:] = 0  # at the right
    mask[2, :2] = 0  # at the left
    outputs = model(inputs_of(ids, mask))
    width = 16 // len(config.directions)
    for row in range(3):
        real = np.flatnonzero(mask[row])
        x, last = read(config, weights, weights["embeddings/token_table"][ids[row, real]], width)
        np.testing.assert_allclose(outputs["sequence_output"][row].numpy()[real], x, atol=1e-5)
        np.testing.assert_allclose(outputs["pooled_output"][row], last[-1][0], atol=1e-5)
        logits = last[-1][0] @ weights["classifier/kernel"] + weights["classifier/bias"]
        np.testing.assert_allclose(outputs["logits"][row], logits, atol=1e-5)


@pytest.mark.parametrize(("cell", "tie"), [("rnn", True), ("lstm", True), ("gru", False)])
def test_a_state_carried_over_segments_is_that_of_the_whole_text(cell, tie):
    config = RecurrentConfig(cell=cell, tie_embeddings=tie, **SIZES)
    model = with_random_biases(build_model(config, "causal_lm", memory=True))
    ids = np.random.default_rng(1).integers(0, 60, (2, 12))
    none = np.zeros((2, 2, 0, 16), "float32")
    whole = model(inputs_of(ids) | {"memory": none})
    first = model(inputs_of(ids[:, :5]) | {"memory": none})
    # Padding behind the end leaves the state as it was.
    rest = np.pad(ids[:, 5:], ((0, 0), (0, 3)))
    mask = np.pad(np.ones((2, 7)), ((0, 0), (0, 3)))
    second = model(inputs_of(rest, mask) | {"memory": first["memory"].numpy()})
    np.testing.assert_allclose(first["logits"], whole["logits"][:, :5], atol=1e-6)
    np.testing.assert_allclose(second["logits"][:, :7], whole["logits"][:, 5:], atol=1e-6)
    np.testing.assert_allclose(second["memory"], whole["memory"], atol=1e-6)
    assert whole["memory"].shape == (2, 2, 2 if cell == "lstm" else 1, 16)
    # The logits are products with the table of tokens, or with one of their own, and a bias.
    weights = weights_of(model)
    x, last = read(config, weights, weights["embeddings/token_table"][ids[0]], 16)
    np.testing.assert_allclose(whole["logits"][0], next_logits(config, weights, x), atol=1e-5)
    np.testing.assert_allclose(whole["memory"][0], last, atol=1e-5)


def test_dropout_is_in_training_alone():
    config = RecurrentConfig(**SIZES, dropout=0.5)
    model = build_model(config, "causal_lm")
    undropped = build_model(dataclasses.replace(config, dropout=0.0), "causal_lm")
    undropped.set_weights(model.get_weights())
    inputs = inputs_of([[1, 2, 3, 4]])
    assert 0.3 < np.mean(model(inputs, training=True)["sequence_output"] == 0) < 0.7
    np.testing.assert_array_equal(
        model(inputs)["logits"], undropped(inputs, training=True)["logits"]
    )
