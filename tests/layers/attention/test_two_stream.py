"""XLNet's attention against loops in NumPy."""

import keras
import numpy as np
import pytest

from tests.layers import witnesses
from tests.layers.witnesses import inputs, near, randomise
from tfnlp.layers import TwoStreamAttention, TwoStreamBlock


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("memory_length", [0, 3])
@pytest.mark.parametrize("length", [1, 2, 7, 20])
def test_two_streams(length, memory_length, masked):
    x, mask = inputs(2, length, 12, length + memory_length, masked)
    g, query_mask = inputs(2, length, 12, length + memory_length, masked, seed=2)
    memory = inputs(2, memory_length, 12, seed=1)[0] if memory_length else None
    same = np.random.default_rng(3).random(mask.shape) < 0.5
    layer = TwoStreamAttention(3, 4)
    layer.build(x.shape)
    randomise(layer)
    found, scores = layer(
        x,
        g,
        memory=memory,
        segment_mask=same,
        attention_mask=mask,
        query_attention_mask=query_mask,
        return_attention_scores=True,
    )
    for i, (stream, seen) in enumerate(((x, mask), (g, query_mask))):
        expected = witnesses.two_streams(layer, stream, x, memory, same, seen)
        near(found[i], expected[0])
        near(scores[i], expected[1])


@pytest.mark.parametrize("make", [lambda: TwoStreamAttention(2, 4), lambda: TwoStreamBlock(2, 16)])
def test_a_functional_model_has_the_scores_of_each_stream(make):
    content, query = keras.Input((5, 8)), keras.Input((5, 8))
    layer = make()
    model = keras.Model([content, query], layer(content, query, return_attention_scores=True))
    streams = inputs(2, 5, 8)[0], inputs(2, 5, 8, seed=1)[0]
    expected = keras.tree.flatten(layer(*streams, return_attention_scores=True))
    for output, due in zip(keras.tree.flatten(model([*streams])), expected, strict=True):
        near(output, due)
