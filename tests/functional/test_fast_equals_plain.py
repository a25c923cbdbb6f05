"""Fast paths of `tfnlp.functional` against their plain statements: values and gradients."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from tfnlp.functional import layer_norm
from tfnlp.functional.attention import Scores, attention, fused_attention
from tfnlp.functional.local_attention import banded_attention
from tfnlp.functional.lookups import chosen_rows, table_rows
from tfnlp.functional.relative_positions import projected_sinusoids, relative_sinusoids
from tfnlp.functional.relative_scores import RelativeTerm, relative_scores

BATCH, HEADS, SIZE = 2, 2, 4
# Targets T and sources S.
LENGTHS = [(1, 1), (5, 5), (3, 9), (17, 40)]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def values_and_gradients(function, *inputs):
    inputs = [tf.constant(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
        pull = tf.reshape(tf.cos(tf.range(tf.size(y), dtype=tf.float32)), tf.shape(y))
        loss = tf.reduce_sum(tf.cast(y, "float32") * pull)
    return [tf.cast(x, "float32").numpy() for x in (y, *tape.gradient(loss, inputs))]


def check_equal(fast, plain, *inputs, tolerance=2e-5):
    """Values and gradients are equal, to a share of the largest of each."""
    results = (values_and_gradients(function, *inputs) for function in (fast, plain))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, atol=tolerance * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("value_heads", [1, HEADS])
@pytest.mark.parametrize(("length", "source_length"), LENGTHS[::2])
def test_fused_attention(length, source_length, value_heads, masked):
    scores = normal(BATCH, HEADS, length, source_length)
    value = normal(BATCH, value_heads, source_length, SIZE, seed=1)
    mask = None
    if masked:
        mask = np.random.default_rng(1).random((BATCH, length, source_length)) < 0.6
        mask[0, 0] = False  # a query that may see nothing
    fast, plain = (functools.partial(f, mask=mask) for f in (fused_attention, attention))
    check_equal(fast, plain, scores, value)


@pytest.mark.parametrize("window", [1, 40])
@pytest.mark.parametrize("shape", [None, (1, 1), (90, 90), (HEADS, 1, 90), (90, 1)])
def test_local_attention_by_bands(window, shape):
    """Whether a mask is of keys, of all pairs, of heads or of queries."""
    query, key, value = (normal(BATCH, HEADS, 90, SIZE, seed=seed) for seed in range(3))
    mask = None
    if shape:
        mask = np.random.default_rng(1).random((BATCH, *shape)) < 0.6
        mask[0, ..., :1, :] = False
    near = np.abs(np.arange(90)[:, None] - np.arange(90)) <= window

    def plain(query, key, value):
        seen = near[None] if mask is None else mask & near
        return attention(Scores(query, key).compute(), value, seen)

    def fast(query, key, value):
        return banded_attention(Scores(query, key), value, mask, window=window)

    check_equal(fast, plain, query, key, value)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("length", "source_length"), [*LENGTHS, (1, 7), (256, 256)])
def test_relative_scores_by_shifts(length, source_length, causal):
    count = length + source_length - 1
    rows = np.random.default_rng(1).permutation(count)
    # Keys after a query's own have no meaning if causal.
    has_meaning = (
        np.tri(length, source_length, source_length - length, "float32") if causal else 1.0
    )

    def plain(query, table):
        return relative_scores(query, table, rows, source_length) * has_meaning

    def fast(query, table):
        term = RelativeTerm("scores", {"query": query, "table": table}, rows, causal=causal)
        return term.compute(length, source_length) * has_meaning

    check_equal(fast, plain, normal(BATCH, HEADS, length, SIZE), normal(HEADS, count, SIZE))


@pytest.mark.parametrize("clamp_length", [None, 4])
@pytest.mark.parametrize(("length", "source_length"), [*LENGTHS, (9, 3)])
def test_projected_sinusoids(length, source_length, clamp_length):
    def plain(kernel):
        table, rows = relative_sinusoids(length, source_length, 8, clamp_length)
        return ops.take(ops.matmul(table, kernel), rows, axis=0)

    def fast(kernel):
        table, rows = projected_sinusoids(length, source_length, kernel, clamp_length)
        return ops.take(table, rows, axis=0)

    check_equal(fast, plain, normal(8, 6))


@pytest.mark.parametrize("shape", [(3, 7, 12), (1, 12)])
def test_layer_norm(shape):
    fast, plain = (
        functools.partial(f, epsilon=1e-5)
        for f in (layer_norm.fused_layer_norm, layer_norm.layer_norm)
    )
    gamma, beta = 1 + 0.3 * normal(12, seed=1), normal(12, seed=2)
    check_equal(fast, plain, 5 + 2 * normal(*shape), gamma, beta)
    fast, plain = (functools.partial(f, beta=None) for f in (fast, plain))
    check_equal(fast, plain, 5 + 2 * normal(*shape), gamma)


def test_few_rows_of_a_table():
    table, ids = normal(3, SIZE), np.array([[0, 2, 2], [1, 0, 2]])
    # Times 1, for a gradient that is no tf.IndexedSlices.
    check_equal(lambda x: chosen_rows(x, ids), lambda x: table_rows(1 * x, ids), table)
    assert chosen_rows(tf.cast(table, "bfloat16"), ids).dtype == "bfloat16"
    assert np.isnan(chosen_rows(table, np.array([3, -1]))).all()
