"""The dense layer in training against inference and Keras' own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfnlp.layers.core.dense import Dense


def test_outputs_and_gradients_are_those_of_keras():
    x = np.random.default_rng(0).normal(size=(2, 5, 3, 4)).astype("float32")
    ours, theirs = Dense(6, activation="tanh"), keras.layers.Dense(6, activation="tanh")
    for layer in (ours, theirs):
        layer.build(x.shape)
        layer.kernel.assign(np.random.default_rng(1).normal(size=(4, 6)))
        layer.bias.assign(np.random.default_rng(2).normal(size=6))

    @tf.function(input_signature=[tf.TensorSpec((None, None, None, 4))], autograph=False)
    def step(x):
        found = []
        for layer in (ours, theirs):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = layer(x, training=True)
                loss = tf.reduce_sum(tf.sin(y))
            found.append([y, *tape.gradient(loss, [x, layer.kernel.value, layer.bias.value])])
        return found

    for a, b in zip(*step(x), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    np.testing.assert_allclose(ours(x, training=False), theirs(x), atol=1e-6)


def normal(shape):
    return np.random.default_rng(1).normal(size=shape).astype("float32")


def test_lora_and_quantising_are_those_of_keras():
    x = np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")
    ours, theirs = (
        cls(6, activation="softmax", lora_rank=2, kernel_regularizer="l2")
        for cls in (Dense, keras.layers.Dense)
    )
    for layer in (ours, theirs):
        layer.build(x.shape)
        layer.set_weights([normal(w.shape) for w in layer.weights])
    np.testing.assert_allclose(ours(x, training=True), theirs(x), atol=1e-6)
    np.testing.assert_allclose(sum(ours.losses), sum(theirs.losses), rtol=1e-6)
    for mode in ("int8", "float8"):
        layers = [cls(6) for cls in (Dense, keras.layers.Dense)]
        for layer in layers:
            layer.build(x.shape)
            layer.set_weights([normal(w.shape) for w in layer.weights])
            layer.quantize(mode)
        np.testing.assert_allclose(layers[0](x), layers[1](x), atol=1e-6)


@pytest.mark.parametrize("mode", [None, "int8", "int4"])
def test_the_kernel_in_numbers(mode):
    layer = Dense(6)
    layer.build((None, 4))
    kernel = normal((4, 6))
    layer.set_weights([kernel, np.arange(6)])
    if mode:
        layer.quantize(mode)
    tolerance = {None: 0, "int8": 0.02, "int4": 0.3}[mode]
    np.testing.assert_allclose(layer.float_kernel(), kernel, atol=tolerance)
