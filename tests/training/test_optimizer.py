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


def test_updates_are_those_of_torch_with_clipping_and_repeated_tokens():
    torch = pytest.importorskip("torch", reason="parity needs tfnlp[parity]")
    rng = np.random.default_rng(0)
    start = [rng.normal(size=(20, 3)).astype("float32"), rng.normal(size=3).astype("float32")]
    ours = [keras.Variable(v) for v in start]
    schedule = WarmupLinearDecay(0.1, 30, 3)
    # A large epsilon, so that where it is added shows.
    optimizer = FusedAdamW(schedule, weight_decay=0.05, epsilon=1e-3, global_clipnorm=1.0)
    theirs = [torch.nn.Parameter(torch.tensor(v)) for v in start]
    reference = torch.optim.AdamW(theirs, weight_decay=0.05, eps=1e-3)
    ids = [1, 5, 5, 7]
    for step in range(10):
        values = np.random.default_rng(step).normal(size=(4, 3)).astype("float32")
        shape = tf.constant([20, 3])
        sparse = tf.IndexedSlices(tf.constant(values), tf.constant(ids), dense_shape=shape)
        optimizer.apply([sparse, tf.constant(values[0])], ours)
        dense = np.zeros((20, 3), "float32")
        np.add.at(dense, ids, values)
        for parameter, gradient in zip(theirs, (dense, values[0]), strict=True):
            parameter.grad = torch.tensor(gradient)
        assert torch.nn.utils.clip_grad_norm_(theirs, 1.0) > 1
        reference.param_groups[0]["lr"] = float(schedule(step))
        reference.step()
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b.detach().numpy(), atol=1e-6)


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
