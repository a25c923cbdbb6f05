"""Words from characters, against the operations of PyTorch that ELMo's code has."""

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.layers import CharacterCNN

torch = pytest.importorskip("torch", reason="parity needs .[parity]")


def made(num_highways=2, activation="relu"):
    layer = CharacterCNN(5, (2, 3, 4), 6, num_highways, activation, num_characters=30)
    layer.build((None, None, None))
    rng = np.random.default_rng(0)
    for weight in layer.weights:
        weight.assign(rng.normal(0, 0.5, weight.shape))
    return layer


def theirs(layer, words):
    """The vectors (n, D) of words (n, W) without padding, in PyTorch; and its leaf tensors."""
    leaves = {w.path: torch.tensor(w.numpy(), requires_grad=True) for w in layer.weights}
    last = {path.partition("/")[2] or path: leaf for path, leaf in leaves.items()}
    x = torch.nn.functional.embedding(torch.tensor(words), last["character_table"])
    widest = []
    for width in range(1, 4):
        kernel = last[f"convolution_{width}/kernel"].permute(2, 1, 0)
        bias = last[f"convolution_{width}/bias"]
        values = torch.nn.functional.conv1d(x.transpose(1, 2), kernel, bias)
        widest.append(getattr(torch, layer.activation)(values.max(2)[0]))
    x = torch.cat(widest, 1)
    for i in range(layer.num_highways):
        gate = torch.sigmoid(x @ last[f"gate_{i}/kernel"] + last[f"gate_{i}/bias"])
        new = torch.relu(x @ last[f"transform_{i}/kernel"] + last[f"transform_{i}/bias"])
        x = gate * new + (1 - gate) * x
    return x @ last["projection/kernel"] + last["projection/bias"], leaves


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_vectors_and_gradients_are_those_of_pytorch(activation):
    layer = made(activation=activation)
    words = np.random.default_rng(1).integers(1, 30, (7, 9))
    expected, leaves = theirs(layer, words)
    with tf.GradientTape() as tape:
        found = layer(words)
        loss = tf.reduce_sum(found**2)
    np.testing.assert_allclose(found, expected.detach(), atol=1e-5)
    (expected**2).sum().backward()
    weights = layer.trainable_variables
    gradients = tape.gradient(loss, [w.value for w in weights])
    for weight, gradient in zip(weights, gradients, strict=True):
        gradient = tf.convert_to_tensor(gradient)
        due = leaves[weight.path].grad.numpy()
        np.testing.assert_allclose(gradient, due, rtol=1e-4, atol=1e-4, err_msg=weight.path)


def test_padding_and_other_words_do_not_change_a_word():
    fresh = CharacterCNN(5, (2, 3), num_highways=1)
    fresh.build((None, None))
    np.testing.assert_array_equal(fresh.gates[0].bias, [-2.0] * 5)  # nearly closed
    layer = made()
    words = np.zeros((3, 8), "int32")
    words[0, :6], words[1, :3], words[2, :1] = [3, 9, 4, 1, 7, 2], [5, 6, 8], [11]
    found = layer(words)
    np.testing.assert_allclose(layer(words[:, :6]), found, atol=1e-6)
    np.testing.assert_allclose(found[:1], theirs(layer, words[:1, :6])[0].detach(), atol=1e-5)
    # A word that is shorter than a filter has one window, with zeros behind it.
    table = layer.character_table.numpy()
    convolution = layer.convolutions[2]
    kernel, bias = (w.numpy() for w in convolution.weights)
    value = np.maximum(table[11] @ kernel[0] + bias, 0)
    x = np.zeros((1, 1, 6), "float32")
    x[0, 0] = table[11]
    widest = layer._widest(tf.constant(x), np.array([[1]], "int32"), convolution)
    np.testing.assert_allclose(widest[0], value, atol=1e-6)
