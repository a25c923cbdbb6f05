"""Layer normalisation against Keras' own, outputs and gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfnlp.layers import LayerNormalization

# Arguments of both.
OPTIONS = [
    {"axis": 1},
    {"axis": [1, 2]},
    {"axis": -3, "scale": False},
    {"center": False},
    {"rms_scaling": True},
    {"gamma_regularizer": "l2", "beta_regularizer": "l1"},
    {"gamma_initializer": "zeros", "beta_initializer": "ones"},
    *({"dtype": dtype} for dtype in ("float32", "mixed_float16", "mixed_bfloat16")),
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.filterwarnings("ignore:You passed `rms_scaling")
def test_outputs_and_gradients_are_those_of_keras(options):
    rng = np.random.default_rng(0)
    x = tf.Variable((5 + 2 * rng.normal(size=(2, 3, 4))).astype("float32"))
    pull, found = rng.normal(size=x.shape).astype("float32"), []
    theirs, ours = keras.layers.LayerNormalization(**options), LayerNormalization(**options)
    for layer in (theirs, LayerNormalization.from_config(ours.get_config())):
        layer.build(x.shape)
        layer.set_weights(
            [w + 0.1 * np.arange(w.size).reshape(w.shape) for w in layer.get_weights()]
        )
        with tf.GradientTape() as tape:
            y = layer(x)
            loss = tf.reduce_sum(tf.cast(y, "float32") * pull) + sum(layer.losses)
        assert layer.compute_output_shape(x.shape) == y.shape and y.dtype == layer.compute_dtype
        gradients = tape.gradient(loss, [x, *(w.value for w in layer.weights)])
        found.append([tf.cast(t, "float32").numpy() for t in (y, *gradients)])
    tolerance = {"mixed_float16": 2e-3, "mixed_bfloat16": 2e-2}.get(options.get("dtype"), 5e-6)
    for expected, value in zip(*found, strict=True):
        scale = max(1, np.abs(expected).max())
        np.testing.assert_allclose(value, expected, rtol=0, atol=tolerance * scale)


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
