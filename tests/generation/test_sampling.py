"""Sampling from top-k and top-p distributions."""

import numpy as np
import tensorflow as tf

from tfnlp.generation import Sample, numpy_rules
from tfnlp.generation.sampling import draw, filtered


def test_draws_go_by_the_summed_shares():
    scores = tf.constant(np.log(np.array([[0.1, 0.2, 0.3, 0.4]] * 5, "float32")))
    uniform = tf.constant([0.0, 0.09, 0.11, 0.59, 0.9999])
    assert draw(scores, uniform).numpy().tolist() == [0, 0, 1, 2, 3]
    # The fewest with 0.6 together are the last two; with 0.75, the last three.
    for top_p, kept in ((0.6, 2), (0.75, 3), (0.4, 1), (0.41, 2), (0.95, 4), (1.0, 4)):
        shares = tf.nn.softmax(filtered(scores[:1], Sample(top_p=top_p)))[0].numpy()
        expected = np.array([0.1, 0.2, 0.3, 0.4])
        expected[: 4 - kept] = 0
        np.testing.assert_allclose(shares, expected / expected.sum(), atol=1e-6)
    kept = filtered(scores[:1], Sample(0.5, top_k=2))[0]
    np.testing.assert_allclose(tf.nn.softmax(kept), [0, 0, 0.36, 0.64], atol=1e-6)


def test_the_cuts_hold_at_any_temperature():
    shares = np.array([0.1, 0.2, 0.3, 0.4], "float32")
    for temperature, top_k, top_p, kept in (
        (1e-30, 1, 0.9, 1),
        (1e-7, 0, 0.9, 1),
        (1e30, 0, 0.6, 3),
        (1e30, 2, 0.1, 1),
    ):
        sample = Sample(temperature, top_k, top_p)
        logits = 20 + np.log(shares)
        for scores in (
            filtered(tf.constant(logits), sample),
            numpy_rules.filtered(logits, sample),
        ):
            np.testing.assert_array_equal(np.isfinite(scores), np.arange(4) >= 4 - kept)
