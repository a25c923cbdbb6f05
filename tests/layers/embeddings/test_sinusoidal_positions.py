"""Positions added to a sequence."""

import keras
import numpy as np
import pytest

from tfnlp.layers import LearnedPositionEncoding, SinusoidalPositionEncoding, sinusoids


def test_sinusoids_are_added_to_scaled_inputs_at_any_positions(tmp_path):
    layer = SinusoidalPositionEncoding(interleaved=False, scale=3.0, max_length=600)
    x = np.random.default_rng(0).normal(size=(2, 4, 6)).astype("float32")
    places = np.array([[0, 1, 2, 3], [599, 0, 7, 8]])
    angles = places[..., None] / 10000.0 ** (np.arange(3) / 3)
    expected = 3 * x + np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    np.testing.assert_allclose(layer(x, positions=places), expected, atol=1e-6)
    np.testing.assert_allclose(layer(x)[0], expected[0], atol=1e-6)
    learned = LearnedPositionEncoding(12)
    np.testing.assert_allclose(learned(x), x + learned.position_table[:4], atol=1e-6)
    interleaved = x + np.asarray(sinusoids(np.arange(4), 6))
    np.testing.assert_allclose(SinusoidalPositionEncoding()(x), interleaved, atol=1e-6)
    # Computed as they are needed they are off by float32's rounding of the angle.
    anywhere = SinusoidalPositionEncoding(interleaved=False, scale=3.0)
    np.testing.assert_allclose(anywhere(x, positions=places), expected, atol=1e-4)
    shorter = ({"max_wavelength": 100.0, "max_length": n} for n in (600, None))
    table, computed = (SinusoidalPositionEncoding(**options)(x) for options in shorter)
    np.testing.assert_allclose(table, computed, atol=1e-6)
    with pytest.raises(ValueError, match="only max_length=600 positions"):
        layer(np.zeros((1, 601, 6)))
    inputs = keras.Input((None, 6))
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(x), layer(x))
