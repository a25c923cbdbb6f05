"""Graph convolution and its gradients against PyTorch's sums."""

import numpy as np
import pytest
import tensorflow as tf
import torch

from tests.layers.witnesses import rand, randomise, weight
from tfnlp.layers import GraphConvolution

ADJACENCY = np.array([[0, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]], "int32")


@pytest.mark.parametrize("by_keras", [False, True])
def test_padding_changes_nothing(by_keras):
    nodes, layer = rand(1, 6, 3), GraphConvolution(5, "tanh")
    adjacency, mask = np.ones((1, 6, 6), "int32"), np.array([[1, 1, 1, 1, 0, 0]])
    masks = {"nodes_mask": mask.astype(bool)} if by_keras else {"node_mask": mask}
    masked = np.asarray(layer(nodes, adjacency, **masks))
    np.testing.assert_allclose(masked[:, :4], layer(nodes[:, :4], adjacency[:, :4, :4]), atol=1e-6)
    assert not masked[:, 4:].any()


def test_states_and_gradients_are_those_of_pytorch():
    nodes, adjacency = rand(1, 4, 3), ADJACENCY[None]
    layer = GraphConvolution(5, "tanh")
    layer(nodes, adjacency)
    randomise(layer)
    with tf.GradientTape() as tape:
        x = tf.constant(nodes)
        tape.watch(x)
        states = layer(x, adjacency)
        loss = tf.reduce_sum(states**2)
    found = tape.gradient(loss, [x, *layer.trainable_variables])
    inputs = [torch.tensor(nodes[0], dtype=torch.float64, requires_grad=True)]
    inputs += [torch.tensor(weight(w), requires_grad=True) for w in layer.trainable_variables]
    x, kernel, bias, neighbour_kernel = inputs
    mean = torch.tensor(ADJACENCY / np.maximum(ADJACENCY.sum(1, keepdims=True), 1))
    expected = torch.tanh(x @ kernel + bias + mean @ x @ neighbour_kernel)
    np.testing.assert_allclose(states[0], expected.detach(), atol=1e-5)
    (expected**2).sum().backward()
    for a, b in zip(found, inputs, strict=True):
        np.testing.assert_allclose(np.squeeze(a), np.squeeze(b.grad), atol=1e-5)
