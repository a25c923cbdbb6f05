"""Adaptive softmax of labels against that of all tokens."""

import numpy as np

from tfnlp.layers import AdaptiveSoftmax


def test_adaptive_softmax_of_labels_is_that_of_all_tokens():
    rng = np.random.default_rng(0)
    layer = AdaptiveSoftmax(10, (4, 7), div_value=2)
    states = rng.normal(size=(2, 10, 8)).astype("float32")
    layer(states)
    layer.set_weights([rng.normal(size=w.shape) for w in layer.weights])
    log_probs = np.asarray(layer(states))
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-5)
    labels = np.stack([np.arange(10), rng.permutation(10)])
    expected = np.take_along_axis(log_probs, labels[..., None], -1)[..., 0]
    np.testing.assert_allclose(layer(states, labels=labels), expected, atol=1e-5)
