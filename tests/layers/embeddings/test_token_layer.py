"""Ids as floats, and tables that load."""

import keras
import numpy as np
import pytest

from tfnlp import layers
from tfnlp.layers import (
    EncoderBlock,
    FactorizedEmbedding,
    TextEmbedding,
)


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


def test_segments_may_be_floats():
    layer = layers.TextEmbedding(9, 8)
    ids, segments = np.array([[3, 4]]), np.array([[0, 1]])
    found = layer(ids.astype("float32"), segments.astype("float32"))
    np.testing.assert_array_equal(found, layer(ids, segments))


@pytest.mark.parametrize("layer", [TextEmbedding(20, 8, 10), FactorizedEmbedding(20, 4, 8)])
def test_layers_on_ids_save_and_load(layer, tmp_path):
    inputs = keras.Input((None,), dtype="int32")
    block = EncoderBlock(2, 16, "gelu_tanh", dropout=0.1, attention_dropout=0.2, norm_first=True)
    model = keras.Model(inputs, block(layer(inputs)))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    ids = np.array([[1, 2, 3]])
    np.testing.assert_array_equal(model(ids), loaded(ids))
