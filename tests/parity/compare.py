"""Comparing tensors, weights and gradients with a reference's."""

import numpy as np
import tensorflow as tf


def near(found, expected, tolerance):
    """Asserts that no entry differs by more than `tolerance`."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def check_gradients(tape, loss, named, relative=1e-4):
    """Asserts that gradients agree within `relative` of their largest entry.

    Args:
        tape: a GradientTape.
        loss: what it recorded.
        named: (variable or tensor, the reference's gradient, whether to transpose it) each.
    """
    variables = [v.value if hasattr(v, "value") else v for v, _, _ in named]
    largest = max(float(np.abs(np.asarray(g)).max()) for _, g, _ in named)
    for (variable, expected, transpose), found in zip(
        named, tape.gradient(loss, variables), strict=True
    ):
        expected = np.asarray(expected)
        expected = expected.T if transpose else expected
        name = getattr(variable, "path", "input")
        if found is None:
            assert not expected.any(), name
            continue
        # The bias of (position) keys shifts all scores of a query alike: its gradient is rounding.
        scale = max(np.abs(expected).max(), 1e-2 * largest)
        found = tf.convert_to_tensor(found).numpy()
        assert np.abs(found - expected).max() <= relative * scale, name
