"""Activations by name, and exact GELU."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import erf

from tfnlp.functional.activations import fused_gelu, get_activation


def test_unknown_activation_is_named():
    with pytest.raises(ValueError, match="mish2"):
        get_activation("mish2")


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "relu", "silu", "tanh"])
def test_a_dense_layer_with_an_activation_of_ours_loads(name, tmp_path):
    dense = keras.layers.Dense(4, activation=get_activation(name))
    model = keras.Sequential([keras.Input((8,)), dense])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    x = 3 * np.random.default_rng(0).normal(size=(5, 8)).astype("float32")
    np.testing.assert_array_equal(loaded(x), model(x))


def test_gelu_is_exact_and_so_is_its_gradient():
    x = np.linspace(-12, 12, 4001)
    phi = 0.5 * (1 + erf(x / np.sqrt(2)))
    density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    inputs = tf.constant(x, "float32")
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        found = fused_gelu(inputs)
    np.testing.assert_allclose(found, x * phi, atol=2e-6)
    np.testing.assert_allclose(tape.gradient(found, inputs), phi + x * density, atol=2e-6)
