"""Decoder blocks from caches of what was projected."""

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.layers import DecoderBlock


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_decoder_block_goes_on_from_what_it_projected(norm_first):
    rng = np.random.default_rng(0)
    x, source = (rng.normal(size=(2, n, 12)).astype("float32") for n in (4, 5))
    shown = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])[:, None, :]
    block = DecoderBlock(3, 16, norm_first=norm_first, feed_forward_dropout=0.5)
    assert block.get_config()["feed_forward_dropout"] == block.feed_forward.dropout == 0.5
    asked = {"return_attention_scores": True, "return_projections": True}
    whole, own_scores, crossing, *projections = block(x, source, encoder_mask=shown, **asked)
    assert own_scores.shape == (2, 3, 4, 4) and crossing.shape == (2, 3, 4, 5)
    _, key, value, cross_query, cross_key, cross_value = projections
    scores = np.asarray(cross_query) @ np.asarray(cross_key).swapaxes(2, 3) / 2
    np.testing.assert_allclose(crossing, scores, atol=1e-5)
    projected = block.cross_attention.project_source(source)
    np.testing.assert_array_equal(projected[0], cross_key)
    np.testing.assert_array_equal(projected[1], cross_value)
    keys, values = np.zeros((2, 3, 4, 4), "float32"), np.zeros((2, 3, 4, 4), "float32")
    for place in range(4):
        found, _, keys, values, *_ = block(
            x[:, place : place + 1],
            None,
            attention_mask=np.arange(4)[None, None] <= np.full((2, 1, 1), place),
            encoder_mask=shown,
            return_projections=True,
            cache=(keys, values, tf.constant(place)),
            encoder_cache=projected,
        )
        np.testing.assert_allclose(found[:, 0], whole[:, place], atol=1e-5)
    np.testing.assert_allclose(keys, key, atol=1e-6)
    np.testing.assert_allclose(values, value, atol=1e-6)
    with pytest.raises(ValueError, match="cache is of a batch of 2, but query of one of 1"):
        block(x[:1], None, cache=(keys, values, tf.constant(0)), encoder_cache=projected)
