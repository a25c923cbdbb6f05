"""One head and several texts: each text has what it has alone, in values and in gradients.

oneDNN, as TensorFlow 2.21 has it, writes out of bounds on processors with AVX-512 where a product
(B, 1, M, K) x (1, K, N) has one matrix for all texts (docs/onednn_matmul.md). On other processors
values are right all the same, so the shapes of all products are tested too.
"""

import math

import numpy as np
import pytest
import tensorflow as tf

from tfnlp import layers
from tfnlp.functional.products import times_table

SEGMENTS = np.arange(5)[:, None] // 2 == np.arange(5) // 2
CAUSAL = {"use_causal_mask": True}


def two_streams(layer, x, **kwargs):
    streams = layer(x, 0.5 - x, segment_mask=np.tile(SEGMENTS, (len(x), 1, 1)), **kwargs)
    return sum(streams)


# Name: a layer, and its call.
CALLS = {
    "plain": (lambda: layers.MultiHeadAttention(1, 4), None),
    "plain in blocks": (lambda: layers.MultiHeadAttention(1, 4, block_size=4), None),
    "relative, causal": (lambda: layers.RelativeAttention(1, 4), lambda f, x: f(x, **CAUSAL)),
    "relative in blocks": (lambda: layers.RelativeAttention(1, 4, block_size=4), None),
    "two streams": (lambda: layers.TwoStreamAttention(1, 4), two_streams),
    "two streams in blocks": (lambda: layers.TwoStreamAttention(1, 4, block_size=4), two_streams),
    "disentangled": (
        lambda: layers.DisentangledAttention(1, 4, terms=layers.ATTENTION_TERMS, max_distance=3),
        None,
    ),
    "disentangled in blocks": (
        lambda: layers.DisentangledAttention(1, 4, max_distance=2, block_size=4),
        lambda f, x: f(np.concatenate([x, x[:, ::-1], x], 1), training=True),
    ),
    "scores": (lambda: layers.ScoreAttention("general"), lambda f, x: f(x, x)),
    "knowledge block": (
        lambda: layers.KnowledgeBlock(1, 6, num_entity_heads=1),
        lambda f, x: sum(f(x, 1 - x, entity_mask=np.tile([1, 0, 1, 1, 0], (len(x), 1)))),
    ),
    "images": (
        lambda: layers.QuadraticPositionAttention(1, 4),
        lambda f, x: f(x[:, :, None] + x[:, None]),
    ),
    "masked images": (
        lambda: layers.QuadraticPositionAttention(1, 4),
        lambda f, x: f(x[:, :, None] + x[:, None], attention_mask=np.tri(25, dtype=bool)),
    ),
}


def made(name):
    make, call = CALLS[name]
    layer, call = make(), call or (lambda f, x: f(x))
    call(layer, np.zeros((1, 5, 8), "float32"))
    rng = np.random.default_rng(0)
    layer.set_weights([rng.normal(size=w.shape, scale=0.4) for w in layer.weights])
    return layer, call


def outputs_and_gradients(layer, call, x):
    with tf.GradientTape() as tape:
        y = call(layer, x)
        pull = tf.cos(tf.range(tf.size(y[0]), dtype="float32"))
        loss = tf.reduce_sum(tf.reshape(y, (len(x), -1)) * pull)
    return y, tape.gradient(loss, [v.value for v in layer.trainable_variables])


@pytest.fixture
def products(monkeypatch):
    """The shapes of all products of Keras' operations, whose gradients have the same shapes."""
    shapes, matmul = [], tf.matmul

    def recorded(a, b, **kwargs):
        shapes.append((tuple(a.shape), tuple(b.shape)))
        return matmul(a, b, **kwargs)

    monkeypatch.setattr(tf, "matmul", recorded)
    return shapes


def broken(products):
    """Those that oneDNN gets wrong: (B, 1, M, K) by one matrix for all texts."""
    return [
        (a, b)
        for a, b in products
        if len(a) == 4 and a[0] > 1 and a[1] == 1 and math.prod(b[:-2]) == 1
    ]


@pytest.mark.parametrize("name", CALLS)
def test_each_text_of_a_batch_is_as_it_is_alone(name, products):
    layer, call = made(name)
    x = np.random.default_rng(1).normal(size=(3, 5, 8)).astype("float32")
    rows = [outputs_and_gradients(layer, call, x[i : i + 1]) for i in range(3)]
    for batch in (2, 3):
        products.clear()
        found, gradients = outputs_and_gradients(layer, call, x[:batch])
        assert products and not broken(products)
        expected = np.concatenate([y for y, _ in rows[:batch]])
        np.testing.assert_allclose(found, expected, atol=1e-5)
        for one, *alone in zip(gradients, *(g for _, g in rows[:batch]), strict=True):
            assert all((x is None) == (one is None) for x in alone)
            if one is not None:
                expected = sum(np.asarray(x) for x in alone)
                scale = max(1, np.abs(expected).max())
                np.testing.assert_allclose(one, expected, atol=1e-4 * scale)


def test_a_table_for_all_texts_is_one_matrix(products):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 1, 5, 4)).astype("float32")
    for shape in ((4, 2), (1, 4, 2), (1, 1, 4, 2)):
        table = rng.normal(size=shape).astype("float32")
        np.testing.assert_allclose(times_table(x, table), x @ table, atol=1e-6)
        assert products.pop() == ((15, 4), (4, 2))
    by_head = rng.normal(size=(2, 4, 2)).astype("float32")
    np.testing.assert_allclose(times_table(x, by_head), x @ by_head, atol=1e-6)
    rows = x[0, 0]
    np.testing.assert_allclose(times_table(rows, by_head[0]), rows @ by_head[0], atol=1e-6)
