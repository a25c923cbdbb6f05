import keras
import numpy as np
import pytest
import tensorflow as tf

from tfnlp.training.optimizer import FusedAdamW, WarmupLinearDecay, adamw


def test_schedule_rises_and_falls_linearly():
    schedule = WarmupLinearDecay(2.0, total_steps=10, warmup_steps=4)
    found = [float(schedule(step)) for step in (0, 2, 4, 7, 10, 12)]
    assert found == pytest.approx([0, 1, 2, 1, 0, 0])
    assert float(WarmupLinearDecay(2.0, 10)(0)) == 2
    with pytest.raises(ValueError, match="warmup_steps=11"):
        WarmupLinearDecay(1.0, 10, 11)


def test_fused_update_equals_keras_adamw_with_sparse_and_dense_gradients():
    rng = np.random.default_rng(0)
    start = [rng.normal(size=(20, 3)).astype("float32"), rng.normal(size=3).astype("float32")]
    results = []
    for cls in (keras.optimizers.AdamW, FusedAdamW):
        variables = [keras.Variable(v) for v in start]
        optimizer = cls(WarmupLinearDecay(0.1, 30, 3), weight_decay=0.05, global_clipnorm=1.0)
        for step in range(10):
            values = tf.constant(np.random.default_rng(step).normal(size=(4, 3)), "float32")
            ids = tf.constant([1, 5, 5, 7])
            sparse = tf.IndexedSlices(values, ids, dense_shape=tf.constant([20, 3]))
            optimizer.apply([sparse, values[0]], variables)
        results.append([v.numpy() for v in variables])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_biases_and_norms_are_not_decayed():
    inputs = keras.Input((4,))
    outputs = keras.layers.LayerNormalization()(keras.layers.Dense(3)(inputs))
    model = keras.Model(inputs, outputs)
    optimizer = adamw(model, 1.0, weight_decay=0.1)
    optimizer.build(model.trainable_variables)
    before = {v.path: v.numpy() for v in model.trainable_variables}
    optimizer.apply([tf.zeros_like(v) for v in model.trainable_variables])
    for variable in model.trainable_variables:
        factor = 0.9 if variable.name == "kernel" else 1.0
        np.testing.assert_allclose(variable, factor * before[variable.path], rtol=1e-6)
