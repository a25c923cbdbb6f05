"""ERNIE's aggregator against its statement in PyTorch: values and gradients."""

import numpy as np
import pytest
import tensorflow as tf

from tests.layers.witnesses import rand, randomise
from tests.parity.compare import check_gradients, near
from tfnlp.layers import KnowledgeBlock

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
functional = torch.nn.functional


def attended(x, weights, part, heads, seen):
    """Softmax attention by heads; `seen` (B, 1, 1, L) as the paper's code adds it, -10000."""

    def project(name, x):
        return x @ weights[f"{part}/{name}/kernel"] + weights[f"{part}/{name}/bias"]

    def split(x):
        return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)

    q, k, v = (split(project(name, x)) for name in ("query", "key", "value"))
    scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5 + (1 - seen) * -10000
    context = (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
    return project("output", context)


def aggregated(w, e, weights, heads, entity_heads, seen, aligned):
    """The aggregator as the paper's code has it."""

    def norm(x, part):
        scale, shift = (weights[f"{part}_norm/{name}"] for name in ("gamma", "beta"))
        return functional.layer_norm(x, x.shape[-1:], scale, shift, 1e-12)

    w = norm(w + attended(w, weights, "attention", heads, seen), "attention")
    shown = aligned[:, None, None]
    e = norm(e + attended(e, weights, "entity_attention", entity_heads, shown), "entity_attention")
    e = e * aligned[:, :, None]
    fusion = {name.removeprefix("feed_forward/"): x for name, x in weights.items()}
    h = functional.gelu(
        w @ fusion["intermediate/kernel"]
        + fusion["intermediate/bias"]
        + e @ fusion["entity_intermediate/kernel"]
    )
    w = norm(w + h @ fusion["output/kernel"] + fusion["output/bias"], "feed_forward")
    e = e + h @ fusion["entity_output/kernel"] + fusion["entity_output/bias"]
    return w, norm(e, "entity_feed_forward") * aligned[:, :, None]


MASKS = {
    "all tokens have entities": (np.ones((2, 6)), np.ones((2, 6))),
    "some have": (np.ones((2, 6)), np.array([[1, 0, 1, 0, 0, 1], [0, 1, 0, 0, 0, 0]])),
    "padding": (np.arange(6) < [[6], [3]], np.array([[1, 0, 1, 0, 0, 1], [0, 1, 1, 0, 0, 0]])),
    "a text has none": (np.ones((2, 6)), np.array([[1, 0, 1, 0, 0, 1], [0] * 6])),
    "none has": (np.ones((2, 6)), np.zeros((2, 6))),
}


@pytest.mark.parametrize(("heads", "entity_heads"), [(2, 3), (1, 1)])
def test_values_and_gradients(heads, entity_heads):
    tokens, entities = rand(2, 6, 8), rand(2, 6, 6, seed=1)
    block = KnowledgeBlock(heads, 10, num_entity_heads=entity_heads)
    block(tokens, entities)
    randomise(block)
    weights = {
        v.path.split("/", 1)[1]: torch.tensor(np.array(v), requires_grad=True)
        for v in block.weights
    }
    pulls = rand(2, 6, 8, seed=2), rand(2, 6, 6, seed=3)
    for padding, aligned in MASKS.values():
        seen = torch.tensor(np.array(padding, "float32"))[:, None, None]
        arguments = seen, torch.tensor(np.array(aligned, "float32"))
        w, e = (torch.tensor(x, requires_grad=True) for x in (tokens, entities))
        expected = aggregated(w, e, weights, heads, entity_heads, *arguments)
        for tensor in weights.values():
            tensor.grad = None
        sum((x * torch.tensor(p)).sum() for x, p in zip(expected, pulls, strict=True)).backward()
        inputs = tf.constant(tokens), tf.constant(entities)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            found = block(*inputs, attention_mask=padding[:, None], entity_mask=aligned)
            loss = sum(tf.reduce_sum(x * p) for x, p in zip(found, pulls, strict=True))
        for a, b in zip(found, expected, strict=True):
            near(a, b.detach().numpy(), 1e-5)
        named = [(v, weights[v.path.split("/", 1)[1]]) for v in block.trainable_variables]
        rows = [(v, tensor.grad.numpy(), False) for v, tensor in named]
        rows += [(x, tensor.grad.numpy(), False) for x, tensor in zip(inputs, (w, e), strict=True)]
        check_gradients(tape, loss, rows)
