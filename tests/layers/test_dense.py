"""The dense layer in training against inference and Keras' own."""

import keras
import numpy as np
import tensorflow as tf

from tfnlp.layers.dense import Dense


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
