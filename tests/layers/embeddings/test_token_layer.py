"""Ids as floats."""

import keras
import numpy as np
import pytest

from tfnlp import layers


@pytest.mark.parametrize(
    "make",
    [
        lambda **kw: layers.TextEmbedding(5000, 8, **kw),
        lambda **kw: layers.FactorizedEmbedding(5000, 4, 8, **kw),
        lambda **kw: layers.AdaptiveEmbedding(5000, 8, (3000,), **kw),
        lambda **kw: layers.TwoStreamEmbedding(5000, 8, **kw),
    ],
)
def test_ids_may_be_floats(make):
    """Whole ones, also where the layer computes in half precision, which has no 4097."""
    ids = np.array([[4097, 4098, 1]])
    for dtype in ("float32", "mixed_float16"):
        layer = make(dtype=dtype)
        inputs = keras.Input((None,))  # of floats, as Keras has it where nothing is said
        model = keras.Model(inputs, layer(inputs))
        expected = layer(ids)
        assert expected.dtype == layer.compute_dtype
        np.testing.assert_array_equal(model(ids.astype("float32")), expected)
        assert np.abs(expected[0, 0] - expected[0, 1]).max() > 1e-4


def test_mask_zero_of_keras_names_what_takes_its_place():
    with pytest.raises(ValueError, match="pad_token_id=0"):
        layers.TextEmbedding(9, 8, mask_zero=True)


def test_segments_may_be_floats():
    layer = layers.TextEmbedding(9, 8)
    ids, segments = np.array([[3, 4]]), np.array([[0, 1]])
    found = layer(ids.astype("float32"), segments.astype("float32"))
    np.testing.assert_array_equal(found, layer(ids, segments))
