"""Calibration of a classifier's probabilities."""

import numpy as np
from scipy import optimize, special

BINS = 15  # as Guo et al. 2017


def calibration_error(logits, labels, bins=BINS):
    """Return the expected calibration error of the most probable class.

    The mean over bins of equal width of |accuracy - mean probability|, weighted by their texts
    (Guo et al. 2017, 'On Calibration of Modern Neural Networks', eq. 3).

    Args:
        logits: (texts, C).
        labels: (texts,), ids.
        bins: the number of bins.
    """
    probabilities = special.softmax(logits, axis=1)
    p, right = probabilities.max(1), probabilities.argmax(1) == labels
    places = np.minimum((p * bins).astype(int), bins - 1)
    gaps = np.bincount(places, right - p, minlength=bins)
    return float(np.abs(gaps).sum() / len(p))


def fit_temperature(logits, labels):
    """Return the temperature T of the least cross-entropy of softmax(logits / T).

    Guo et al. 2017, section 4.2. It lies between 0.05 and 20, since labels that are all right, or
    all wrong, have none.

    Args:
        logits, labels: as in `calibration_error`.
    """
    rows = np.arange(len(labels))

    def cross_entropy(log_t):
        return -special.log_softmax(logits / np.exp(log_t), axis=1)[rows, labels].mean()

    bounds = np.log([0.05, 20.0])
    best = optimize.minimize_scalar(cross_entropy, bounds=bounds, method="bounded")
    return float(np.exp(best.x))
