"""Weights of classes in the loss."""

import numpy as np

from tfnlp.text.reading.readers import as_number
from tfnlp.utils.errors import InputError, unknown_name


def class_weights(spec, examples, multi_label=False):
    """Return the weight of each class, a tuple of C numbers, or None for none.

    Args:
        spec: ["balanced"], or a list of "NAME=WEIGHT", others 1; None for none. Balanced classes
            all have the same weight in total: n / (C n_c), as `class_weight` of scikit-learn. With
            `multi_label` a label has the same where it applies as where not: (n - n_c) / n_c.
        examples: `Examples` with labels, of which n_c have class c; of `SoftExamples` n_c is the
            sum of its probabilities, which the loss weights.
        multi_label: whether `labels` are tuples, of any number of labels a text.

    Raises:
        InputError: for an unknown class, one named twice, and a weight that is no positive number.
    """
    if not spec:
        return None
    names = [str(name) for name in examples.label_names]
    if spec == ["balanced"]:
        return _balanced(examples, len(names), multi_label)
    weights = {}
    for item in spec:
        name, equals, text = item.rpartition("=")
        if not equals:
            raise InputError(
                f"class_weights={','.join(spec)} must be balanced alone, or NAME=WEIGHT each."
            )
        if name not in names:
            raise unknown_name("class_weights", name or item, [*names, "balanced"])
        if name in weights:
            raise InputError(f"class_weights={item}: {name!r} has a weight already; give one.")
        weights[name] = _positive(item, text)
    return tuple(weights.get(name, 1.0) for name in names)


def check_class_weights(weights, num_classes):
    """Raise an InputError unless there is a weight for each class, or None."""
    if weights is not None and len(weights) != num_classes:
        raise InputError(
            f"class_weights has {len(weights)} numbers, but there are {num_classes} classes; give "
            "each one."
        )


def _balanced(examples, num_classes, multi_label):
    n, probabilities = len(examples.labels), getattr(examples, "probabilities", None)
    ids = [i for row in examples.labels for i in row] if multi_label else examples.labels
    counts = np.bincount(np.asarray(ids, int), minlength=num_classes)
    counts = np.maximum(counts if probabilities is None else probabilities.sum(0), 1)
    weights = (n - counts) / counts if multi_label else n / (num_classes * counts)
    return tuple(np.maximum(weights, 1 / n).tolist())  # a label of all texts keeps a loss


def _positive(item, text):
    try:
        weight = as_number(text)
    except ValueError:
        weight = 0.0
    if not 0 < weight < float("inf"):
        raise InputError(f"class_weights={item}: {text!r} must be a positive number.")
    return weight
