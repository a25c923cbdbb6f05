"""Classification that gives no answer where it is not sure enough."""

import numpy as np


def selective_threshold(probabilities, right, accuracy):
    """Return the lowest threshold at which the answered texts have an accuracy.

    It has the most coverage at this accuracy on the given texts (Geifman and El-Yaniv 2017,
    'Selective Classification for Deep Neural Networks', without its bound for other texts). Where
    none has the accuracy, it is the one with the highest.

    Args:
        probabilities: (texts,), of the most probable class.
        right: (texts,), whether that class is right.
        accuracy: the least share of the answered texts that must be right.

    Returns:
        A number midway between two neighbouring probabilities; 0 where all texts are answered.
    """
    order = np.argsort(-probabilities, kind="stable")
    p, counts = probabilities[order], np.arange(1, len(order) + 1)
    accuracies = np.cumsum(right[order]) / counts
    accuracies[:-1][p[:-1] == p[1:]] = -1  # equal probabilities are on one side
    least = min(accuracy, accuracies.max())
    last = np.flatnonzero(accuracies >= least)[-1]
    return 0.0 if last + 1 == len(p) else float((p[last] + p[last + 1]) / 2)


def coverage_scores(right, answered):
    """Return the share of texts that are answered, and the accuracy of these; 0 for none.

    Args:
        right, answered: (texts,), booleans.
    """
    count = int(np.sum(answered))
    accuracy = np.sum(right & answered) / max(count, 1)
    return {"coverage": count / len(answered), "selective_accuracy": float(accuracy)}
