"""Recurrent attention against loops in NumPy, and against that of Keras."""

import keras
import numpy as np
import pytest

from tests.layers import witnesses
from tests.layers.witnesses import inputs, near, randomise
from tfnlp.layers import (
    ScoreAttention,
)


@pytest.mark.parametrize("score", ["dot", "general", "concat"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7, 33])
def test_recurrent_scores(score, masked, length):
    query, mask = inputs(2, length, 6, 5, masked)
    value = inputs(2, 5, 4, seed=1)[0]
    key = inputs(2, 5, 6, seed=2)[0]
    layer = ScoreAttention(score)
    layer.build(query.shape, value.shape, key.shape)
    if layer.weights:
        randomise(layer)
    found = layer(query, value, key, attention_mask=mask, return_attention_scores=True)
    expected = witnesses.recurrent(layer, query, value, key, mask)
    for a, b in zip(found, expected, strict=True):
        near(a, b)


def test_recurrent_scores_equal_those_of_keras():
    query, value = inputs(2, 3, 6)[0], inputs(2, 5, 6, seed=1)[0]
    near(ScoreAttention("dot")(query, value), keras.layers.Attention()([query, value]))
    ours, theirs = ScoreAttention("concat"), keras.layers.AdditiveAttention()
    ours(query, value), theirs([query, value])
    ours.query.kernel.assign(np.eye(6))
    ours.key.kernel.assign(np.eye(6))
    ours.direction.kernel.assign(theirs.scale.numpy()[:, None])
    near(ours(query, value), theirs([query, value]))
