"""Recurrent attention against that of Keras."""

import keras
import numpy as np
import pytest

from tests.layers.witnesses import near, rand
from tfnlp.layers import ScoreAttention


@pytest.mark.parametrize("score", ["dot", "general", "concat"])
def test_values_and_scores_are_those_of_keras(score):
    query, value, key = rand(2, 3, 6), rand(2, 5, 4, seed=1), rand(2, 5, 6, seed=2)
    mask = np.arange(5) < [[5], [3]]
    layer = ScoreAttention(score)
    layer(query, value, key)
    for weight in layer.weights:
        weight.assign(0.5 * rand(*weight.shape, seed=3))
    theirs = (keras.layers.AdditiveAttention if score == "concat" else keras.layers.Attention)()
    projected = [query, key]
    if score == "general":
        projected[1] = key @ layer.key.kernel.numpy()
    if score == "concat":
        projected = [query @ layer.query.kernel.numpy(), key @ layer.key.kernel.numpy()]
        theirs.build([x.shape for x in (projected[0], value, projected[1])])
        theirs.scale.assign(layer.direction.kernel[:, 0])
    asked = {"attention_mask": mask[:, None], "return_attention_scores": True}
    context, scores = layer(query, value, key, **asked)
    expected, weights = theirs(
        [projected[0], value, projected[1]], mask=[None, mask], return_attention_scores=True
    )
    near(context, np.asarray(expected))
    shares = np.exp(scores) * mask[:, None]
    near(shares / shares.sum(-1, keepdims=True), np.asarray(weights))
    assert not np.any(layer(query, value, key, attention_mask=np.zeros((2, 3, 5))))
