"""The mean of the weights after the last epochs."""

import keras
import numpy as np
import pytest

from tfnlp.training.weight_averaging import RecentWeights
from tfnlp.utils.errors import InputError


def make(value):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="dense")], name="m")
    model.set_weights([np.full((2, 3), value, "float32"), np.full(3, -value, "float32")])
    return model


def test_the_mean_is_over_the_last_epochs_alone(tmp_path):
    recent = RecentWeights(tmp_path / "recent", 3)
    for epoch, value in enumerate((100.0, 1.0, 2.0, 6.0), start=1):
        recent.keep(epoch, make(value))
    assert len([*(tmp_path / "recent").iterdir()]) == 3
    model = make(0.0)
    recent.load_mean(model, 4)
    np.testing.assert_array_equal(model.get_weights()[0], np.full((2, 3), 3.0))
    np.testing.assert_array_equal(model.get_weights()[1], np.full(3, -3.0))


def test_fewer_epochs_and_an_epoch_that_is_trained_once_more(tmp_path):
    recent = RecentWeights(tmp_path, 3)
    for epoch, value in ((1, 1.0), (2, 9.0), (2, 3.0)):
        recent.keep(epoch, make(value))
    model = make(0.0)
    recent.load_mean(model, 2)
    np.testing.assert_array_equal(model.get_weights()[0], np.full((2, 3), 2.0))
    # What a run that was killed behind the state it goes on from had written is dropped.
    recent.keep(1, make(5.0))
    with pytest.raises(InputError, match=r"epoch_2\.safetensors, of the mean over 2 epochs"):
        recent.load_mean(model, 2)
