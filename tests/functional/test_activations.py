"""Activations by name, and exact GELU."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import erf

from tfnlp.functional.activations import fused_gelu, gelu, get_activation


def test_unknown_activation_is_named():
    with pytest.raises(ValueError, match="mish2"):
        get_activation("mish2")


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "relu"])
def test_a_dense_layer_with_an_activation_of_ours_loads(name, tmp_path):
    dense = keras.layers.Dense(4, activation=get_activation(name))
    model = keras.Sequential([keras.Input((8,)), dense])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    x = 3 * np.random.default_rng(0).normal(size=(5, 8)).astype("float32")
    np.testing.assert_array_equal(loaded(x), model(x))


def test_the_plain_gelu_is_the_fused_one():
    x = np.linspace(-12, 12, 4001, dtype="float32")
    np.testing.assert_allclose(gelu(x), fused_gelu(x), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_gelu_is_exact_and_so_is_its_gradient(dtype):
    # Of numbers that half precision has. What is kept for the gradient, at most 2, is rounded too.
    inputs = tf.cast(np.linspace(-12, 12, 4001), dtype)
    x = np.asarray(tf.cast(inputs, "float64"))
    rounding = {"float32": 0, "bfloat16": 2**-8, "float16": 2**-11}[dtype]
    phi = 0.5 * (1 + erf(x / np.sqrt(2)))
    density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = fused_gelu(inputs)
    gradient = tape.gradient(outputs, inputs)
    outputs, gradient = (np.asarray(tf.cast(t, "float64")) for t in (outputs, gradient))
    np.testing.assert_allclose(outputs, x * phi, rtol=rounding, atol=2e-6)
    np.testing.assert_allclose(gradient, phi + x * density, rtol=rounding, atol=2e-6 + rounding)
