"""Both streams of XLNet in a functional model; their numbers are compared in tests/parity."""

import keras
import pytest

from tests.layers.witnesses import inputs, near
from tfnlp.layers import TwoStreamAttention, TwoStreamBlock


@pytest.mark.parametrize("make", [lambda: TwoStreamAttention(2, 4), lambda: TwoStreamBlock(2, 16)])
def test_a_functional_model_has_the_scores_of_each_stream(make):
    content, query = keras.Input((5, 8)), keras.Input((5, 8))
    layer = make()
    model = keras.Model([content, query], layer(content, query, return_attention_scores=True))
    streams = inputs(2, 5, 8)[0], inputs(2, 5, 8, seed=1)[0]
    expected = keras.tree.flatten(layer(*streams, return_attention_scores=True))
    for output, due in zip(keras.tree.flatten(model([*streams])), expected, strict=True):
        near(output, due)
