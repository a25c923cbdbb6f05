import keras
import numpy as np
import pytest

from tfnlp.functional.attention import attention, fused_attention
from tfnlp.layers import MultiHeadAttention


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"value_dim": 5},
        {"output_shape": 7, "use_bias": False},
        {"value_dim": 3, "output_shape": (6,), "dropout": 0.2, "kernel_regularizer": "l2"},
    ],
)
def test_takes_over_the_weights_of_keras_multi_head_attention(options):
    rng = np.random.default_rng(1)
    initializer = keras.initializers.RandomNormal(stddev=0.3, seed=0)
    theirs = keras.layers.MultiHeadAttention(4, 8, bias_initializer=initializer, **options)
    x = rng.normal(size=(2, 9, 16)).astype("float32")
    value, key = rng.normal(size=(2, 5, 12)), rng.normal(size=(2, 5, 10))
    theirs(x, value, key)
    ours = MultiHeadAttention.from_keras(theirs)
    mask = rng.random((2, 9, 5)) < 0.7
    mask[..., 0] = True
    found, expected = (f(x, value, key, attention_mask=mask) for f in (ours, theirs))
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert (ours.value_dim, ours.dropout) == (options.get("value_dim", 8), theirs.dropout)
    assert (ours.kernel_regularizer is None) == ("kernel_regularizer" not in options)
    np.testing.assert_allclose(sum(ours.losses), sum(theirs.losses), rtol=1e-6)
    again = MultiHeadAttention.from_config(ours.get_config())
    again(x, value, key)
    assert [w.shape for w in again.weights] == [w.shape for w in ours.weights]


def test_takes_over_the_settings_of_an_unbuilt_keras_layer():
    ours = MultiHeadAttention.from_keras(keras.layers.MultiHeadAttention(2, 3, output_shape=5))
    assert ours(np.zeros((1, 4, 6), "float32")).shape == (1, 4, 5)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((1, 4, 6), {"use_gate": True}, "use_gate"),
        ((1, 4, 6), {"sliding_window": 2}, "sliding_window"),
        ((1, 4, 5, 6), {}, "attention_axes"),
    ],
)
def test_refuses_keras_layers_that_compute_something_else(shape, options, message):
    attention, x = keras.layers.MultiHeadAttention(2, 3, **options), np.zeros(shape, "float32")
    attention(x, x)
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention.from_keras(attention)


@pytest.mark.parametrize("attend", [attention, fused_attention])
def test_queries_that_see_nothing_attend_to_zeros_where_weights_are_dropped(attend):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(2, 2, 3, 4)).astype("float32")
    value = 1 + rng.random((2, 2, 4, 5)).astype("float32")
    mask = np.ones((2, 3, 4), bool)
    mask[1, 2] = False
    found = np.array(attend(scores, value, mask, keras.layers.Dropout(0.5, seed=1)))
    np.testing.assert_array_equal(found[1, :, 2], np.zeros((2, 5)))
    found[1, :, 2] = 1
    assert (found.max(axis=-1) > 0).mean() > 0.8
