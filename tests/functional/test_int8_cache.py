"""Attention over cached keys and values of 8 bits."""

import numpy as np
import pytest

from tfnlp.functional.attention import Scores, attention
from tfnlp.functional.int8_cache import Int8Cache, int8_product

N, C, H = 3, 200, 16


def rounded(keys, values):
    """The caches of keys and values, which are put in by two pieces."""
    empty = np.zeros((1, N, 1, C), "float32")
    codes = np.zeros((1, N, C, H), "int8")
    caches = Int8Cache(codes, empty), Int8Cache(codes.swapaxes(2, 3), empty)
    for first, last in ((0, 150), (150, C)):
        pair = zip(caches, (keys, values), (False, True), strict=True)
        caches = [c.put(x[:, :, first:last], first, is_value) for c, x, is_value in pair]
    return caches


@pytest.mark.parametrize("tokens", [1, 3])
def test_attention_is_nearly_that_of_floats(tokens):
    rng = np.random.default_rng(0)
    query = rng.normal(size=(1, N, tokens, H)).astype("float32")
    keys, values = rng.normal(size=(2, 1, N, C, H)).astype("float32")
    # One place has nine tenths of the weight and a small value: what is left counts.
    keys[:, :, 0] = 9 * query[:, :, 0] / (query[:, :, 0] ** 2).sum(axis=-1, keepdims=True)
    values[:, :, 0] *= 0.01
    mask = np.arange(C)[None, None] < 190
    expected = attention(Scores(query, keys).compute(), values, mask)
    keys, values = rounded(keys, values)
    assert keys.codes.dtype == "int8" and keys.shape == (1, N, C, H)
    scores = Scores(query, keys).compute(int8_product)
    found = attention(scores, values, mask, product=int8_product)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert 1e-4 < error < 0.04
