"""Losses against those that TensorFlow derives, and against other libraries."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfnlp.functional.weighted_losses import (
    binary_cross_entropy,
    cross_entropy,
    focal,
    soft_cross_entropy,
    token_cross_entropy,
)


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


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_focal_losses_are_those_of_the_paper_and_of_keras(gamma):
    """Keras clips probabilities at 1e-7; the weights of classes are not its alpha."""
    rng = np.random.default_rng(2)
    logits, ids = 3 * rng.normal(size=(6, 4)).astype("float32"), rng.integers(0, 4, 6)
    applies, soft = rng.integers(0, 2, (6, 4)), rng.dirichlet(np.ones(4), 6).astype("float32")
    p = np.array([0.1, 0.5, 0.9], "float32")
    np.testing.assert_allclose(focal(np.log(p), gamma), -((1 - p) ** gamma) * np.log(p), rtol=1e-5)
    binary = keras.losses.BinaryFocalCrossentropy(gamma=gamma, from_logits=True)
    several = keras.losses.CategoricalFocalCrossentropy(alpha=1, gamma=gamma, from_logits=True)
    for ours, theirs in (
        (binary_cross_entropy(applies, logits, gamma=gamma), binary(applies, logits)),
        (cross_entropy(ids, logits, gamma=gamma), several(np.eye(4)[ids], logits)),
        (soft_cross_entropy(soft, logits, gamma=gamma), several(soft, logits)),
    ):
        assert float(ours) == pytest.approx(float(theirs), rel=1e-5)
    w = np.array([1, 2, 3, 4], "float32")
    each = [float(cross_entropy(ids[i : i + 1], logits[i : i + 1], gamma=gamma)) for i in range(6)]
    weighted = cross_entropy(ids, logits, class_weights=tuple(w), gamma=gamma)
    assert float(weighted) == pytest.approx(np.average(each, weights=w[ids]), rel=1e-5)


def test_the_focal_loss_of_what_is_sure_has_finite_gradients():
    for loss, labels in ((cross_entropy, [0]), (binary_cross_entropy, [[1, 0]])):
        for sure in (-200.0, 0.0, 200.0):
            logits = tf.constant([[sure, -sure]])
            with tf.GradientTape() as tape:
                tape.watch(logits)
                value = loss(np.array(labels), logits, gamma=0.5)
            assert np.isfinite(value) and np.isfinite(tape.gradient(value, logits)).all()
