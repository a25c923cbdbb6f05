"""Attention over paths and pairs of concepts against loops, its gradients against PyTorch's."""

import numpy as np
import tensorflow as tf
import torch

from tests.layers.witnesses import rand, randomise, weight
from tfnlp.layers import PathAttention

# Paths of each pair: the first text has two pairs, the second one, the third none.
COUNTS = [(2, 3, 0), (0, 1, 0), (0, 0, 0)]
MASK = np.array([[np.arange(3) < count for count in counts] for counts in COUNTS])


def of_text(text, pairs, paths, counts, path_query, pair_query):
    """Return g and both weights of one text, from the sums of the paper, in PyTorch."""
    path_weights, rows, scores = [], [], []
    for pair, of_pair, count in zip(pairs, paths, counts, strict=True):
        weights = torch.softmax(of_pair[:count] @ (pair @ path_query), 0)
        path_weights.append(torch.cat([weights, torch.zeros(3 - count)]))
        if count:
            rows.append(torch.cat([weights @ of_pair[:count], pair]))
            scores.append(text @ pair_query @ pair)
    path_weights = torch.stack(path_weights)
    pair_weights = torch.zeros(len(counts), dtype=torch.float64)
    if not rows:
        return torch.zeros(7, dtype=torch.float64), path_weights, pair_weights
    weights = torch.softmax(torch.stack(scores), 0)
    pair_weights[[i for i, count in enumerate(counts) if count]] = weights
    return weights @ torch.stack(rows), path_weights, pair_weights


def test_sums_and_gradients_are_those_of_the_paper():
    text, pairs, paths = rand(3, 6), rand(3, 3, 3, seed=1), rand(3, 3, 3, 4, seed=2)
    layer = PathAttention()
    layer(text, pairs, paths, MASK)
    randomise(layer)
    with tf.GradientTape() as tape:
        inputs = [tf.constant(x) for x in (text, pairs, paths)]
        tape.watch(inputs)
        outputs = layer(*inputs, MASK)
        loss = sum(tf.reduce_sum(x**2) for x in outputs)
    found = tape.gradient(loss, [*inputs, *layer.trainable_variables])
    tensors = [torch.tensor(weight(x), requires_grad=True) for x in inputs]
    tensors += [torch.tensor(weight(w), requires_grad=True) for w in layer.trainable_variables]
    rows = [
        of_text(*(x[i] for x in tensors[:3]), counts, *tensors[3:])
        for i, counts in enumerate(COUNTS)
    ]
    expected = [torch.stack(x) for x in zip(*rows, strict=True)]
    sum((x**2).sum() for x in expected).backward()
    for a, b in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(a, b.detach(), atol=1e-5)
    assert not outputs[0][2].numpy().any()  # a text without paths
    for a, b in zip(layer(*inputs), layer(*inputs, np.ones_like(MASK)), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(found, tensors, strict=True):
        np.testing.assert_allclose(a, b.grad, atol=1e-5)
