"""Links: what logits mean, how far two of them are apart, and what their mean is.

A link is the function that makes answers of a head's outputs (McCullagh & Nelder 1989,
'Generalized Linear Models', section 2.2). Losses, distillation, regularizers, ensembles and
exported files read all of it from here.
"""

import collections.abc
import dataclasses

from keras import ops

from tfnlp.functional.masks import MASKED


@dataclasses.dataclass(frozen=True, eq=False)
class Link:
    """Link of logits (..., C).

    Args:
        probability: function of logits to answers of the same shape: probabilities or numbers.
        divergence: function of two logits and a temperature T to the divergence (...) of the
            second from the first, T^2 KL or a squared error.
        symmetric: function of two logits to the divergence (...) in both directions, each with
            the gradient towards a fixed first one.
        mean: function of logits of M models (B, M, ..., C), their shares, which broadcast, and T
            to logits (B, ..., C) whose answer is the weighted mean of theirs.
        over_positions: whether C are the positions of a text, of which padding has no part.
    """

    probability: collections.abc.Callable
    divergence: collections.abc.Callable
    symmetric: collections.abc.Callable
    mean: collections.abc.Callable
    over_positions: bool = False

    def without_padding(self, logits, padding_mask):
        """Return logits, those over positions without the padding of a mask (B, L) or None."""
        if not self.over_positions or padding_mask is None:
            return logits
        return ops.where(ops.cast(padding_mask, "bool"), logits, MASKED)


def class_divergence(teacher, student, temperature=1.0):
    """Compute the divergence of softened class probabilities, T^2 KL(teacher || student).

    Hinton et al. 2015, 'Distilling the Knowledge in a Neural Network', section 2. Logits (..., C)
    are divided by the temperature T, and the factor T^2 keeps the size of the gradient.

    Returns:
        (...).
    """
    check_classes(student)
    return temperature**2 * kl_divergence(teacher / temperature, student / temperature)


def kl_divergence(a, b):
    """Compute KL(p || q), the sum of p (log p - log q) over the last axis, from logits."""
    log_p, log_q = ops.log_softmax(a), ops.log_softmax(b)
    return ops.sum(ops.exp(log_p) * (log_p - log_q), axis=-1)


def check_classes(logits):
    """Check that logits have more than one class: a softmax of (..., 1) has no gradient.

    Raises:
        ValueError: if they have one class.
    """
    if logits.shape[-1] == 1:
        raise ValueError(
            f"logits of shape {tuple(logits.shape)} have one class, so that every loss of their "
            "softmax is 0; give 2 classes or more, or a squared error for a number."
        )


def _class_symmetric(a, b):
    # KL(b, a) + KL(a, b) as one product, which stays exact where both nearly agree.
    log_a, log_b = ops.log_softmax(a), ops.log_softmax(b)
    distance = ops.stop_gradient(ops.exp(log_b) - ops.exp(log_a))
    return ops.sum(distance * (log_b - log_a), axis=-1)


def _class_mean(logits, shares, temperature=1.0):
    log_p = ops.log_softmax(logits / temperature) + ops.log(ops.maximum(shares, 1e-30))
    return temperature * ops.logsumexp(log_p, axis=1)


def label_divergence(teacher, student, temperature=1.0):
    """Compute T^2 KL(teacher || student) of the softened probability of each label, the mean.

    The labels (..., C) are independent, each with the probability sigmoid(logit / T).

    Returns:
        (...).
    """
    a, b = teacher / temperature, student / temperature
    p = ops.sigmoid(a)
    both = p * (ops.log_sigmoid(a) - ops.log_sigmoid(b))
    both += (1 - p) * (ops.log_sigmoid(-a) - ops.log_sigmoid(-b))
    return temperature**2 * ops.mean(both, axis=-1)


def _label_symmetric(a, b):
    distance = ops.stop_gradient(ops.sigmoid(b) - ops.sigmoid(a))
    return ops.mean(distance * (b - a), axis=-1)


def _label_mean(logits, shares, temperature=1.0):
    log_shares = ops.log(ops.maximum(shares, 1e-30))
    log_p, log_not = (
        ops.logsumexp(ops.log_sigmoid(sign * logits / temperature) + log_shares, axis=1)
        for sign in (1, -1)
    )
    return temperature * (log_p - log_not)


def _squared_error(teacher, student, temperature=1.0):
    return ops.mean(ops.square(teacher - student), axis=-1)


def _number_mean(numbers, shares, temperature=1.0):
    return ops.sum(numbers * shares, axis=1)


SOFTMAX = Link(ops.softmax, class_divergence, _class_symmetric, _class_mean)
# Each of several labels by itself.
SIGMOID = Link(ops.sigmoid, label_divergence, _label_symmetric, _label_mean)
# Numbers, which have no temperature.
IDENTITY = Link(lambda numbers: numbers, _squared_error, _squared_error, _number_mean)
# One of the positions of a text.
POSITIONS = dataclasses.replace(SOFTMAX, over_positions=True)

LINKS = {"softmax": SOFTMAX, "sigmoid": SIGMOID, "identity": IDENTITY, "positions": POSITIONS}
