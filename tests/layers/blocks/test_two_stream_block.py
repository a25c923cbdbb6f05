"""`TwoStreamBlock`: two streams through the weights of one `EncoderBlock`."""

import numpy as np
import tensorflow as tf

from tests.layers.witnesses import rand
from tfnlp.layers import TwoStreamAttention, TwoStreamBlock, permutation_masks


def test_streams_are_those_of_the_attention_with_residuals():
    block = TwoStreamBlock(2, 12, norm_first=True, activation="relu")
    h, g, memory = rand(2, 5, 8), rand(2, 3, 8, seed=1), rand(2, 2, 8, seed=2)
    mapping = np.eye(5, dtype="float32")[np.array([[4, 0, 2], [1, 2, 3]])]
    order = np.array([[2, 0, 1, 4, 3], [0, 3, 1, 2, 4]])
    masks = permutation_masks(order, np.concatenate([0 * order[:, :2] - 1, order], 1))
    arguments = {
        "target_mapping": mapping,
        "segment_mask": rand(2, 5, 7) > 0,
        "attention_mask": masks[0],
        "query_attention_mask": masks[1],
    }
    block.build(h.shape)
    for w in block.weights:
        w.assign(0.5 * rand(*w.shape, seed=len(w.path)))
    found, scores = block(h, g, memory=memory, return_attention_scores=True, **arguments)
    before = block.attention_norm
    streams, expected_scores = block.attention(
        before(h), before(g), memory=before(memory), return_attention_scores=True, **arguments
    )
    for a, b in zip(scores, expected_scores, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
        assert a.shape == (2, 2, 5, 7)
    for x, attended, y in zip((h, g), streams, found, strict=True):
        x = x + np.asarray(attended)
        expected = x + block.feed_forward(block.feed_forward_norm(x))
        np.testing.assert_allclose(y, expected, atol=1e-4)


def test_the_query_stream_sees_what_the_content_stream_does_where_nothing_else_is_said():
    layer, x, g = TwoStreamAttention(2, 4), rand(1, 5, 8), rand(1, 5, 8, seed=1)
    mask = np.tri(5, dtype=bool)
    _, found = layer(x, g, attention_mask=mask)
    _, expected = layer(x, g, attention_mask=mask, query_attention_mask=mask)
    np.testing.assert_array_equal(found, expected)
    assert np.abs(found - layer(x, g)[1]).max() > 1e-3


def test_without_segments_every_weight_has_a_gradient():
    layer = TwoStreamAttention(2, 4, use_segments=False)
    x = tf.random.normal((2, 5, 8))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x) ** 2)
    assert all(g is not None for g in tape.gradient(loss, layer.trainable_variables))
    whole = TwoStreamAttention(2, 4)
    whole.build(x.shape)
    assert {v.name for v in whole.weights} - {v.name for v in layer.weights} == {
        "segment_bias",
        "segment_table",
    }
    copy = TwoStreamAttention.from_config(layer.get_config())
    assert not copy.use_segments
