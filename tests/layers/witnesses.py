"""What tests of layers have in common: random inputs and weights, and sums in double precision."""

import numpy as np


def rand(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def layer_norm(x, epsilon):
    x = x.astype("float64")
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)


def weight(variable):
    return np.asarray(variable).astype("float64")


def project(dense, x):
    y = x @ weight(dense.kernel)
    return y if dense.bias is None else y + weight(dense.bias)


def sinusoid(position, dim):
    """All sines, then all cosines."""
    angles = [position / 10000 ** (2 * n / dim) for n in range(dim // 2)]
    return np.array([np.sin(a) for a in angles] + [np.cos(a) for a in angles])


def inputs(batch, length, width, source=None, masked=True, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(batch, length, width)).astype("float32")
    mask = np.ones((batch, length, source or length), bool)
    if masked:
        mask = rng.random(mask.shape) < 0.7
        mask[0, 0] = False  # a query that may see nothing
    return x, mask


def randomise(layer, seed=0):
    rng = np.random.default_rng(seed)
    layer.set_weights([rng.normal(size=w.shape, scale=0.5) for w in layer.weights])


def near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max()))
