"""The mean of the states of real tokens."""

import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from tfnlp import layers

IDS = np.array([[3, 4, 5, 0, 0], [6, 7, 8, 9, 0]])


def test_the_mean_is_that_of_real_tokens():
    x = keras.layers.Embedding(10, 8, mask_zero=True)(IDS)
    rows = np.asarray(x)
    expected = [rows[0, :3].mean(0), rows[1, :4].mean(0)]
    pool = layers.MeanPooling()
    np.testing.assert_allclose(pool(x), expected, rtol=1e-6)
    np.testing.assert_allclose(pool(rows, IDS > 0), expected, rtol=1e-6)
    np.testing.assert_allclose(pool(rows), rows.mean(1), rtol=1e-6)
    assert not np.any(pool(rows, np.zeros_like(IDS)))


def test_half_precision_adds_up_in_float32():
    x = np.full((1, 4096, 2), 30.0, "float16")  # whose sum, 122,880, float16 has not
    pooled = layers.MeanPooling(dtype="float16")(x, np.ones((1, 4096)))
    assert pooled.dtype == "float16"
    np.testing.assert_array_equal(pooled, [[30, 30]])


def test_it_converts_to_tflite_for_any_length():
    inputs = keras.Input((None, 4)), keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, layers.MeanPooling()(*inputs))
    content = tf.lite.TFLiteConverter.from_keras_model(model).convert()
    runner = Interpreter(model_content=content).get_signature_runner("serving_default")
    x = np.random.default_rng(0).normal(size=(1, 5, 4)).astype("float32")
    mask = np.array([[1, 1, 1, 0, 0]], "int32")
    names = sorted(runner.get_input_details())
    (found,) = runner(**dict(zip(names, (x, mask), strict=True))).values()
    np.testing.assert_allclose(found, x[:, :3].mean(1), rtol=1e-6)
