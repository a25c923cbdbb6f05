"""Losses whose gradient is written by hand, against those that TensorFlow derives."""

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.functional.weighted_losses import cross_entropy, token_cross_entropy


@pytest.mark.parametrize("scale", [1.0, 60.0])  # at 60 most labels' probabilities are 0
def test_token_cross_entropy_is_cross_entropy(scale):
    rng = np.random.default_rng(0)
    logits = tf.constant(scale * rng.normal(size=(3, 5, 40)), "float32")
    labels = rng.integers(0, 40, (3, 5)).astype("int32")
    labels[0, 3:] = labels[2] = -100
    found, gradients = [], []
    for loss in (token_cross_entropy, cross_entropy):
        for weights in ((), (np.array([2.0, 0.5, 1.0], "float32"),)):
            with tf.GradientTape() as tape:
                tape.watch(logits)
                found.append(loss(labels, logits, *weights))
            gradients.append(tape.gradient(found[-1], logits))
    for i in range(2):
        assert float(found[i]) == pytest.approx(float(found[i + 2]), rel=1e-5)
        np.testing.assert_allclose(gradients[i], gradients[i + 2], atol=1e-6)
        assert np.abs(gradients[i]).max() > 0.01
    nothing = token_cross_entropy(np.full((1, 5), -100), logits[:1])
    assert float(nothing) == 0


def test_smoothed_labels_by_hand():
    # Shares 3/4 and 1/4; with e = 0.1 the label is 0.95 of the first class and 0.05 of the other.
    loss = token_cross_entropy([[0]], tf.constant([[[np.log(3.0), 0.0]]]), label_smoothing=0.1)
    assert float(loss) == pytest.approx(-0.95 * np.log(0.75) - 0.05 * np.log(0.25), rel=1e-6)


@pytest.mark.parametrize("smoothing", [0.1, 0.5])
def test_smoothed_labels_are_those_of_transformers(smoothing):
    torch = pytest.importorskip("torch", reason="parity needs .[parity]")
    utilities = pytest.importorskip("transformers.trainer_pt_utils", reason="parity")
    rng = np.random.default_rng(1)
    values = 3 * rng.normal(size=(3, 5, 40)).astype("float32")
    labels = rng.integers(0, 40, (3, 5))
    labels[0, 3:] = -100
    logits = tf.constant(values)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = token_cross_entropy(labels.astype("int32"), logits, label_smoothing=smoothing)
    theirs = torch.tensor(values, requires_grad=True)
    smoother = utilities.LabelSmoother(epsilon=smoothing)
    expected = smoother({"logits": theirs}, torch.tensor(labels))
    expected.backward()
    assert float(loss) == pytest.approx(expected.item(), rel=1e-5)
    np.testing.assert_allclose(tape.gradient(loss, logits), theirs.grad, atol=1e-7)
