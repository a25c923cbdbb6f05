"""Truncated normal weights against SciPy."""

import keras
import numpy as np
from scipy import stats

from tfnlp.layers import FastTruncatedNormal


def test_fresh_weights_are_a_truncated_normal():
    draw = FastTruncatedNormal(stddev=0.02)
    values = np.ravel(draw((400, 300)))
    assert np.abs(values).max() <= 0.04
    assert stats.kstest(values / 0.02, stats.truncnorm(-2, 2).cdf).statistic < 0.01
    assert not np.array_equal(draw.clone()((3,)), draw((3,)))
    again = keras.initializers.deserialize(keras.initializers.serialize(draw))
    assert type(again) is FastTruncatedNormal and again.stddev == 0.02
