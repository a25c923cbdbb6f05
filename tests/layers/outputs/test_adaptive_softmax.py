"""Adaptive softmax of labels against that of all tokens."""

import numpy as np
import tensorflow as tf

from tfnlp.layers import AdaptiveSoftmax


def test_values_and_gradients_of_labels_are_those_of_all_tokens():
    rng = np.random.default_rng(0)
    layer = AdaptiveSoftmax(30, (5, 12), div_value=2)
    states = tf.Variable(rng.normal(size=(2, 6, 8)).astype("float32"))
    labels = np.array([[0, 29, 7, 11, -100, 3], [5, 12, 4, 4, 20, -1]])
    layer(states)
    layer.set_weights([rng.normal(size=w.shape) for w in layer.weights])
    variables = [states, *(w.value for w in layer.trainable_weights)]
    with tf.GradientTape(persistent=True) as tape:
        found = layer(states, labels=labels)
        whole = layer(states)
        expected = tf.gather(whole, np.maximum(labels, 0), axis=-1, batch_dims=2)
        losses = [tf.reduce_sum(tf.where(labels >= 0, x, 0.0)) for x in (found, expected)]
    np.testing.assert_allclose(np.exp(whole).sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(found[labels >= 0], expected[labels >= 0], atol=1e-5)
    for a, b in zip(*(tape.gradient(loss, variables) for loss in losses), strict=True):
        np.testing.assert_allclose(tf.convert_to_tensor(a), tf.convert_to_tensor(b), atol=1e-5)
