"""Blocks that share weights: counts, saving, quantising, groups."""

import keras
import numpy as np
import pytest

from tfnlp.layers import SharedEncoder

# Parameters of one block of width 8, 2 heads and inner width 16, in its two parts with norms.
ATTENTION = 4 * (8 * 8 + 8) + 2 * 8
FEED_FORWARD = (8 * 16 + 16) + (16 * 8 + 8) + 2 * 8


@pytest.mark.parametrize(
    ("sharing", "groups", "count"),
    [
        ("all", 2, 2 * (ATTENTION + FEED_FORWARD)),
        ("attention", 2, 2 * ATTENTION + 4 * FEED_FORWARD),
        ("feed_forward", 1, 4 * ATTENTION + FEED_FORWARD),
        ("none", 1, 4 * (ATTENTION + FEED_FORWARD)),
    ],
)
def test_sharing_counts_weights_once_and_survives_saving(sharing, groups, count, tmp_path):
    encoder = SharedEncoder(4, 2, 16, sharing=sharing, num_groups=groups)
    inputs = keras.Input((None, 8))
    model = keras.Model(inputs, encoder(inputs))
    assert encoder.count_params() == count
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    np.testing.assert_array_equal(model(x), loaded(x))
    assert loaded.count_params() == count
    # Shared before, shared after: a change of the first block's part shows in the last's.
    first, last = loaded.layers[1].blocks[0], loaded.layers[1].blocks[-1]
    assert (first.attention is last.attention) == (groups == 1 and sharing in ("all", "attention"))
    assert (first.feed_forward is last.feed_forward) == (
        groups == 1 and sharing in ("all", "feed_forward")
    )


def test_blocks_with_a_part_in_common_are_quantised():
    encoder = SharedEncoder(2, 2, 16, sharing="attention")
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    expected = encoder(x)
    keras.Sequential([keras.Input((5, 8)), encoder]).quantize("int8")
    dtypes = {w.dtype for w in encoder.weights if w.name == "kernel"}
    assert dtypes == {"int8"}
    np.testing.assert_allclose(encoder(x), expected, atol=0.1)


def test_a_shared_encoder_is_cloned_with_its_sharing():
    x = keras.Input((None, 8))
    model = keras.Model(x, SharedEncoder(4, 2, 16, sharing="attention")(x))
    clone = keras.models.clone_model(model)
    assert clone.count_params() == model.count_params()
    blocks = clone.layers[1].blocks
    assert blocks[0].attention is blocks[3].attention
    clone.set_weights(model.get_weights())
    inputs = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    np.testing.assert_array_equal(clone(inputs), model(inputs))
