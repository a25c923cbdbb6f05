import numpy as np

from tfnlp.layers import ScalarMix

X = np.random.default_rng(0).normal(size=(2, 5, 3, 4)).astype("float32")


def test_a_mix_starts_as_the_mean_and_is_gamma_times_shares():
    mix = ScalarMix()
    np.testing.assert_allclose(mix(X), X.mean(axis=2), atol=1e-6)
    weights = np.array([0.5, -1.0, 2.0])
    mix.mix_weights.assign(weights)
    mix.gamma.assign([3.0])
    shares = np.exp(weights) / np.exp(weights).sum()
    np.testing.assert_allclose(mix.shares(), shares, atol=1e-6)
    due = 3 * sum(share * X[:, :, k] for k, share in enumerate(shares))
    np.testing.assert_allclose(mix(X), due, atol=1e-5)
