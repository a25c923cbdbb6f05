"""Transformer-XL's attention; its numbers are compared in tests/parity."""

import pytest
import tensorflow as tf

from tests.layers.witnesses import inputs, near
from tfnlp.layers import RelativeAttention, TwoStreamAttention


@pytest.mark.parametrize(("length", "source_length"), [(7, 7), (3, 8), (8, 3)])
def test_relative_positions_of_both_directions_at_once_or_each(length, source_length):
    """With dropout every sinusoid is projected, without it half of them are."""
    x, _ = inputs(2, length, 12)
    value = inputs(2, source_length, 12, seed=1)[0]
    layer = RelativeAttention(3, 4, clamp_length=4, position_dropout=1e-9)
    expected = layer(x, value, training=True)
    near(layer(x, value), expected)


def test_memory_has_no_gradient():
    x, _ = inputs(1, 3, 8)
    memory = tf.random.normal((1, 2, 8))
    for layer in (RelativeAttention(2, 4), TwoStreamAttention(2, 4)):
        with tf.GradientTape() as tape:
            tape.watch(memory)
            y = layer(x, memory=memory)
        assert tape.gradient(y, memory) is None
