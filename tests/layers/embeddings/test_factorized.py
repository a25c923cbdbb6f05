"""Factorized embeddings and their tied output against NumPy."""

import keras
import numpy as np

from tfnlp.layers import FactorizedEmbedding


def test_tables_and_their_tied_output_in_a_saved_model(tmp_path):
    layer = FactorizedEmbedding(11, 3, 6, use_output_bias=True)
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, layer(layer(ids), reverse=True))
    assert model.output.shape == (None, None, 11)
    assert model.count_params() == 11 * 3 + 3 * 6 + 6 + 11
    layer.output_bias.assign(np.arange(11))
    x = np.array([[1, 5, 10]])
    table, (kernel, bias) = layer.token_table.numpy(), layer.projection.get_weights()
    states = table[x] @ kernel + bias
    np.testing.assert_allclose(layer(x), states, atol=1e-6)
    expected = states @ kernel.T @ table.T + np.arange(11)
    np.testing.assert_allclose(model(x), expected, atol=1e-6)
    narrow = states[..., :3]
    expected = narrow @ table.T + np.arange(11)
    np.testing.assert_allclose(layer(narrow, reverse=True), expected, atol=1e-6)
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(x), model(x))
