"""Sinusoids and log buckets by hand."""

import numpy as np

from tests.layers.witnesses import sinusoid
from tfnlp.layers import log_buckets, sinusoids


def test_sinusoids_of_the_paper_and_of_transformer_xl():
    positions = np.array([0, 1, 7, 300, -4])
    found = np.asarray(sinusoids(positions, 10, interleaved=False))
    expected = np.stack([sinusoid(p, 10) for p in positions])
    np.testing.assert_allclose(found, expected, atol=3e-5)
    pairs = np.asarray(sinusoids(positions, 10))
    np.testing.assert_array_equal(pairs[:, 0::2], found[:, :5])
    np.testing.assert_array_equal(pairs[:, 1::2], found[:, 5:])


def test_log_buckets_near_and_far():
    # DeBERTa v3: exact up to 128, the last bucket 255 at distance 511.
    distances = np.array([0, 1, -127, 128, 129, 200, 511, -511])
    buckets = log_buckets(distances, 256, 512)
    np.testing.assert_array_equal(buckets, [0, 1, -127, 128, 129, 169, 255, -255])
