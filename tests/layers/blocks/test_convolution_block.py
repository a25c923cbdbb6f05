"""The convolution beside a block."""

import numpy as np

from tfnlp.layers import ConvolutionBlock


def test_padding_is_convolved_as_zeros():
    rng = np.random.default_rng(0)
    inputs, states = rng.normal(size=(2, 1, 5, 4)).astype("float32")
    block, mask = ConvolutionBlock(3), np.array([[1, 1, 1, 0, 0]])
    found = np.asarray(block(inputs, states, padding_mask=mask))
    alone = np.asarray(block(inputs[:, :3], states[:, :3]))
    np.testing.assert_allclose(found[:, :3], alone, atol=1e-6)
    assert not found[:, 3:].any()
