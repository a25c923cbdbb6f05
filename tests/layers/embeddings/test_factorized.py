"""Factorized embeddings and their tied output against NumPy."""

import keras
import numpy as np

from tfnlp.layers import (
    FactorizedEmbedding,
)


def test_factorized_embedding_is_a_product_of_two_matrices():
    layer = FactorizedEmbedding(50, 4, 16)
    ids = np.array([[1, 49, 3]])
    y = layer(ids)
    table = layer.token_table.numpy()
    kernel, bias = layer.projection.get_weights()
    np.testing.assert_allclose(y, table[ids] @ kernel + bias, atol=1e-6)
    assert layer.count_params() == 50 * 4 + 4 * 16 + 16


def test_tied_output_goes_back_through_the_projection():
    layer = FactorizedEmbedding(11, 3, 6)
    ids = np.array([[1, 2]])
    layer(ids)
    states = np.random.default_rng(0).normal(size=(2, 4, 6)).astype("float32")
    table, kernel = layer.token_table.numpy(), layer.projection.kernel.numpy()
    np.testing.assert_allclose(layer(states, reverse=True), states @ kernel.T @ table.T, atol=1e-6)
    narrow = states[..., :3]
    np.testing.assert_allclose(layer(narrow, reverse=True), narrow @ table.T, atol=1e-6)


def test_tied_output_in_a_saved_model(tmp_path):
    layer = FactorizedEmbedding(11, 3, 6, use_output_bias=True)
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, layer(layer(ids), reverse=True))
    assert model.output.shape == (None, None, 11)
    model.save(tmp_path / "model.keras")
    x = np.array([[1, 5, 10]])
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(x), model(x))
    assert model.count_params() == 11 * 3 + 3 * 6 + 6 + 11
