"""Sinusoids and log buckets by hand."""

import numpy as np

from tests.layers.witnesses import sinusoid
from tfnlp.layers import sinusoids


def test_sinusoids_of_the_paper_and_of_transformer_xl():
    positions = np.array([0, 1, 7, 300, -4])
    found = np.asarray(sinusoids(positions, 10, interleaved=False))
    expected = np.stack([sinusoid(p, 10) for p in positions])
    np.testing.assert_allclose(found, expected, atol=3e-5)
    pairs = np.asarray(sinusoids(positions, 10))
    np.testing.assert_array_equal(pairs[:, 0::2], found[:, :5])
    np.testing.assert_array_equal(pairs[:, 1::2], found[:, 5:])
