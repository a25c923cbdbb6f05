"""Rotary positions against complex numbers, as the paper derives them."""

import numpy as np
import pytest

from tests.layers.witnesses import near, rand
from tfnlp.layers import MultiHeadAttention, RotaryEmbedding


@pytest.mark.parametrize("theta", [10000.0, 50.0])
def test_each_pair_of_features_turns_by_its_position(theta):
    x = rand(2, 3, 7, 8)
    pairs = x[..., :4] + 1j * x[..., 4:]
    angles = np.arange(7)[:, None] * theta ** (-2 * np.arange(4) / 8)
    turned = pairs * np.exp(1j * angles)
    near(RotaryEmbedding(theta)(x), np.concatenate([turned.real, turned.imag], axis=-1))


def test_scores_follow_the_distance_alone():
    layer = MultiHeadAttention(2, 6, rotary=RotaryEmbedding())
    x = np.repeat(rand(1, 1, 12), 9, axis=1)  # the same token everywhere
    _, scores = layer(x, return_attention_scores=True)
    for distance in range(-8, 9):
        diagonal = np.diagonal(scores[0], distance, axis1=1, axis2=2)
        near(diagonal, diagonal[:, :1] + 0 * diagonal)
    assert np.std(scores[0, 0, 0]) > 1e-3
