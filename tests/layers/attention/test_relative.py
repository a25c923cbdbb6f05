"""Transformer-XL's attention against loops in NumPy."""

import types

import numpy as np
import pytest
import tensorflow as tf

from tests.layers import witnesses
from tests.layers.witnesses import inputs, near, randomise
from tfnlp.layers import (
    RelativeAttention,
    RelativeBiases,
    TwoStreamAttention,
)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("memory_length", [0, 4])
@pytest.mark.parametrize("length", [1, 2, 7, 33])
def test_relative(length, memory_length, masked):
    x, mask = inputs(2, length, 12, length + memory_length, masked)
    memory = inputs(2, memory_length, 12, seed=1)[0] if memory_length else None
    layer = RelativeAttention(3, 4, clamp_length=5, use_bias=True)
    layer.build(x.shape)
    randomise(layer)
    found = layer(x, memory=memory, attention_mask=mask, return_attention_scores=True)
    for a, b in zip(found, witnesses.relative(layer, x, memory, mask), strict=True):
        near(a, b)


def test_relative_causal_equals_a_causal_mask():
    x, _ = inputs(2, 9, 12)
    memory = inputs(2, 4, 12, seed=1)[0]
    layer = RelativeAttention(3, 4)
    causal = np.tri(9, 13, 4, dtype=bool)
    expected, expected_scores = layer(
        x, memory=memory, attention_mask=causal, return_attention_scores=True
    )
    found, scores = layer(x, memory=memory, use_causal_mask=True, return_attention_scores=True)
    near(found, expected)
    near(scores * causal, expected_scores * causal)


@pytest.mark.parametrize(("length", "source_length"), [(7, 7), (3, 8), (8, 3)])
def test_relative_positions_of_both_directions_at_once_or_each(length, source_length):
    """With dropout every sinusoid is projected, without it half of them are."""
    x, _ = inputs(2, length, 12)
    value = inputs(2, source_length, 12, seed=1)[0]
    layer = RelativeAttention(3, 4, clamp_length=4, position_dropout=1e-9)
    expected = layer(x, value, training=True)
    near(layer(x, value), expected)


def test_relative_biases_are_shared():
    x, mask = inputs(2, 5, 12)
    biases = RelativeBiases(3, 4)
    u, v = biases(x)
    first, second = RelativeAttention(3, 4), RelativeAttention(3, 4)
    for layer in (first, second):
        found = layer(x, content_bias=u, position_bias=v, attention_mask=mask)
        assert layer.content_bias is None and len(layer.weights) == 5
        parts = vars(layer) | {"content_bias": u, "position_bias": v}
        near(found, witnesses.relative(types.SimpleNamespace(**parts), x, None, mask)[0])


def test_memory_has_no_gradient():
    x, _ = inputs(1, 3, 8)
    memory = tf.random.normal((1, 2, 8))
    for layer in (RelativeAttention(2, 4), TwoStreamAttention(2, 4)):
        with tf.GradientTape() as tape:
            tape.watch(memory)
            y = layer(x, memory=memory)
        assert tape.gradient(y, memory) is None
