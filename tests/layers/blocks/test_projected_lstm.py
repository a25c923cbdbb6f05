"""LSTM with a projection, against PyTorch's and a loop."""

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.layers import ProjectedLSTM

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
X = np.random.default_rng(0).normal(size=(3, 6, 5)).astype("float32")
LENGTHS = [6, 4, 1]
MASK = np.arange(6) < np.array(LENGTHS)[:, None]


def made(**options):
    layer = ProjectedLSTM(7, 4, **options)
    layer.build(X.shape)
    rng = np.random.default_rng(1)
    for weight in layer.weights:
        weight.assign(rng.normal(0, 0.7, weight.shape))
    return layer


def theirs(layer):
    """PyTorch's LSTM of the same weights; it has two biases in place of one."""
    lstm = torch.nn.LSTM(5, 7, proj_size=4, batch_first=True)
    kernel, recurrent, projection, bias = (torch.tensor(w.numpy()) for w in layer.weights)
    lstm.weight_ih_l0.data, lstm.weight_hh_l0.data = (
        kernel.T.contiguous(),
        recurrent.T.contiguous(),
    )
    lstm.weight_hr_l0.data = projection.T.contiguous()
    lstm.bias_ih_l0.data, lstm.bias_hh_l0.data = bias, torch.zeros_like(bias)
    return lstm


@pytest.mark.parametrize(("backwards", "masked"), [(False, False), (False, True), (True, True)])
def test_states_and_gradients_are_those_of_pytorch(backwards, masked):
    layer = made(go_backwards=backwards)
    lstm, rows = theirs(layer), []
    for x, length in zip(X, LENGTHS if masked else [6] * 3, strict=True):
        x = torch.tensor(x[None, :length])
        out = lstm(x.flip(1))[0].flip(1) if backwards else lstm(x)[0]
        rows.append(out[0])
    x, mask = tf.constant(X), MASK if masked else None
    with tf.GradientTape() as tape:
        found = layer(x, mask=mask)
        loss = tf.reduce_sum(tf.boolean_mask(found, MASK if masked else np.ones_like(MASK)) ** 2)
    for row, due in zip(found.numpy(), rows, strict=True):
        np.testing.assert_allclose(row[: len(due)], due.detach(), atol=1e-5)
    sum((row**2).sum() for row in rows).backward()
    kernel, recurrent, projection, bias = tape.gradient(loss, [w.value for w in layer.weights])
    for gradient, due in (
        (kernel, lstm.weight_ih_l0.grad.T),
        (recurrent, lstm.weight_hh_l0.grad.T),
        (projection, lstm.weight_hr_l0.grad.T),
        (bias, lstm.bias_ih_l0.grad),
    ):
        np.testing.assert_allclose(gradient, due, rtol=1e-4, atol=1e-4)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_cells_and_outputs_are_clipped_as_a_loop_clips_them():
    fresh = ProjectedLSTM(2, 3)
    fresh.build((None, None, 4))
    np.testing.assert_array_equal(fresh.bias, [0, 0, 1, 1, 0, 0, 0, 0])  # open to the cell
    layer = made(clip=0.3)
    kernel, recurrent, projection, bias = (w.numpy() for w in layer.weights)
    cells, outputs, due = np.zeros((3, 7)), np.zeros((3, 4)), []
    for t in range(6):
        i, f, g, o = np.split(X[:, t] @ kernel + outputs @ recurrent + bias, 4, axis=1)
        cells = np.clip(sigmoid(f) * cells + sigmoid(i) * np.tanh(g), -0.3, 0.3)
        outputs = np.clip((sigmoid(o) * np.tanh(cells)) @ projection, -0.3, 0.3)
        due.append(outputs)
    found = layer(X)
    assert np.abs(found).max() == pytest.approx(0.3)
    np.testing.assert_allclose(found, np.stack(due, 1), atol=1e-5)
