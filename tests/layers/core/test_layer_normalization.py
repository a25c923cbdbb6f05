"""Layer normalisation against Keras' own, outputs and gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfnlp.layers import LayerNormalization


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((3, 7, 12), "float32"), ((5, 12), "mixed_float16"), ((3, 7, 12), "mixed_bfloat16")],
)
def test_outputs_and_gradients_are_those_of_keras(shape, dtype):
    rng = np.random.default_rng(0)
    x = tf.Variable((5 + 2 * rng.normal(size=shape)).astype("float32"))
    pull = rng.normal(size=shape).astype("float32")
    found = []
    for cls in (keras.layers.LayerNormalization, LayerNormalization):
        layer = cls(epsilon=1e-5, dtype=dtype)
        layer.build(shape)
        layer.gamma.assign(1 + 0.3 * np.random.default_rng(1).normal(size=12))
        layer.beta.assign(np.random.default_rng(2).normal(size=12))
        with tf.GradientTape() as tape:
            y = layer(x)
            loss = tf.reduce_sum(tf.cast(y, "float32") * pull)
        assert y.dtype == layer.compute_dtype
        gradients = tape.gradient(loss, [x, layer.gamma.value, layer.beta.value])
        found.append([tf.cast(t, "float32").numpy() for t in (y, *gradients)])
    tolerance = {"float32": 2e-6, "mixed_float16": 2e-3, "mixed_bfloat16": 2e-2}[dtype]
    for expected, value in zip(*found, strict=True):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(value, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize(
    "options",
    [
        {"axis": 1},
        {"axis": [1, 2]},
        {"axis": -3, "scale": False},
        {"center": False},
        {"rms_scaling": True},
        {"gamma_regularizer": "l2", "beta_regularizer": "l1"},
        {"gamma_initializer": "zeros", "beta_initializer": "ones"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:You passed `rms_scaling")
def test_every_argument_of_keras(options):
    rng = np.random.default_rng(0)
    x = tf.Variable((5 + 2 * rng.normal(size=(2, 3, 4))).astype("float32"))
    pull = rng.normal(size=x.shape).astype("float32")
    theirs, ours = keras.layers.LayerNormalization(**options), LayerNormalization(**options)
    found = []
    for layer in (theirs, LayerNormalization.from_config(ours.get_config())):
        layer.build(x.shape)
        layer.set_weights(
            [w + 0.1 * np.arange(w.size).reshape(w.shape) for w in layer.get_weights()]
        )
        with tf.GradientTape() as tape:
            y = layer(x)
            loss = tf.reduce_sum(y * pull) + sum(layer.losses)
        assert layer.compute_output_shape(x.shape) == y.shape
        found.append([y, *tape.gradient(loss, [x, *(w.value for w in layer.weights)])])
    assert len(found[0]) == len(found[1])
    for expected, value in zip(*found, strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-5)


def test_a_constant_row_is_zero_and_has_a_finite_gradient():
    x = np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")
    x[0, 0] = 0
    x, layer = tf.Variable(x), LayerNormalization(epsilon=1e-12)
    with tf.GradientTape() as tape:
        y = layer(x)
        loss = tf.reduce_sum(y * tf.range(4.0))
    assert np.isfinite(tape.gradient(loss, x)).all()
    np.testing.assert_array_equal(y[0, 0], 0)
    np.testing.assert_allclose(np.mean(y, -1), 0, atol=1e-6)
