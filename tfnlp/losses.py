"""Losses as means over a whole batch, wherever its examples are.

Every loss is a sum of weighted entries (examples, tokens, pairs of tokens) over the sum of the
weights of all replicas, so that training under a `tf.distribute` strategy is training on one
device, however many entries each replica has, and be it none.
"""

import contextlib
import threading

import keras
import tensorflow as tf
from keras import ops

from tfnlp.text.batches import IGNORED


def weighted_mean(values, *weights):
    """The mean of a batch's entries, over all replicas together.

    Args:
        values: (B, ...), an entry each.
        weights: of the entries, (B,) or with more of the axes of `values`; the product of all
            counts. None is left out.

    Returns:
        A float32 scalar; 0 where all weights are 0. On one of n replicas it is a share, the mean
        over n, as Keras' trainer expects it: the gradient is of the replica's own entries, and
        the sum of all replicas' gradients is that of the mean.

    Raises:
        ValueError: for weights that do not fit.
    """
    values = ops.cast(values, "float32")
    weight = entry_weights(values, *weights)
    total, weight = ops.sum(values * weight), ops.sum(weight)
    if reads_parts():
        return _thread.parts.mean(total, weight)
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return ops.divide_no_nan(total, weight)
    fixed = [ops.stop_gradient(total), ops.stop_gradient(weight)]
    all_total, all_weight = context.all_reduce(tf.distribute.ReduceOp.SUM, fixed)
    own = ops.divide_no_nan(total, all_weight)
    share = ops.divide_no_nan(all_total, all_weight) / context.num_replicas_in_sync
    # All replicas show the same value, so that means over replicas or steps stay exact.
    return own + ops.stop_gradient(share - own)


# The threads of replicas each have parts of their own.
_thread = threading.local()


def reads_parts():
    """Whether this thread reads a part of a batch: see `in_parts`."""
    return getattr(_thread, "parts", None) is not None


class CountedWeights:
    """While a batch's parts are counted: the weight of every `weighted_mean`, in their order."""

    def __init__(self):
        self.weights = []

    def mean(self, total, weight):
        self.weights.append(weight)
        return 0.0 * total


class KnownWeights:
    """While a part is learned from: each `weighted_mean` is over the weights of the whole batch.

    Args:
        weights: (n,) of the n means in their order, of all parts and replicas.
        scale: what the value of a part's mean, but not its gradient, is multiplied with, so that
            means over parts by their examples are those of the whole batch.
    """

    def __init__(self, weights, scale):
        self.weights = weights
        self.scale = scale
        self.seen = 0

    def mean(self, total, weight):
        own = ops.divide_no_nan(total, self.weights[self.seen])
        self.seen += 1
        return own + ops.stop_gradient((self.scale - 1) * own)


class KeptSums:
    """While dev is measured: each `weighted_mean` and what it is of, to be summed over batches."""

    def __init__(self):
        self._found = []

    def mean(self, total, weight):
        value = ops.divide_no_nan(total, weight)
        self._found.append((value, total, weight))
        return value

    def of(self, loss):
        """The sum of entries and that of their weights, of what a `weighted_mean` gave.

        Raises:
            ValueError: for another loss.
        """
        for value, total, weight in self._found:
            if value is loss:
                return total, weight
        raise ValueError("A loss is no tfnlp.losses.weighted_mean, so that its weight is unknown.")


@contextlib.contextmanager
def in_parts(parts):
    """Within, this thread's `weighted_mean` is that of an object such as `KnownWeights`."""
    _thread.parts = parts
    try:
        yield parts
    finally:
        _thread.parts = None


def entry_weights(values, *weights):
    """The product of weights as `weighted_mean` takes them, float32 in the shape of `values`."""
    product = ops.ones_like(values, dtype="float32")
    for weight in weights:
        if weight is not None:
            missing = len(values.shape) - len(weight.shape)
            # (B, 1) for entries (B,) is what Keras allows too.
            axes = [1] * missing
            shape = (*ops.shape(weight), *axes) if missing >= 0 else ops.shape(values)
            product = product * ops.reshape(ops.cast(weight, "float32"), shape)
    return product


def whole(loss):
    """The mean over all replicas that a replica's `loss` is a share of, for a metric."""
    context = tf.distribute.get_replica_context()
    return loss if context is None else loss * context.num_replicas_in_sync


def cross_entropy(labels, logits, *weights):
    """The mean cross-entropy of labels (...) and logits (..., C); the label -100 counts nothing.

    Args:
        labels: integers.
        logits: of 2 or more classes.
        weights: as `weighted_mean` takes them.

    Raises:
        ValueError: for logits of one class, whose cross-entropy is 0 whatever they are.
    """
    check_classes(logits)
    labels = ops.convert_to_tensor(labels)
    real = ops.not_equal(labels, IGNORED)
    values = keras.losses.sparse_categorical_crossentropy(
        ops.where(real, labels, 0), ops.cast(logits, "float32"), from_logits=True
    )
    return weighted_mean(values, real, *weights)


def token_cross_entropy(labels, logits, *weights, label_smoothing=0.0):
    """`cross_entropy` of many classes, such as a vocabulary's, in a third of the time on a CPU.

    The probabilities are computed once, and are all that the gradient needs. With label smoothing
    e a label is e / V of each of the V classes, and 1 - e more of its own (Szegedy et al. 2016,
    section 7), as `LabelSmoother` of `transformers` and PyTorch have it; fairseq spreads e over
    the other V - 1.

    Args:
        labels, logits, weights: as `cross_entropy` takes them.
        label_smoothing: e, at least 0 and below 1.
    """
    labels = ops.convert_to_tensor(labels)
    real = ops.not_equal(labels, IGNORED)
    rows = ops.reshape(ops.cast(logits, "float32"), (-1, logits.shape[-1]))
    found = ops.reshape(ops.where(real, labels, 0), (-1,))
    values = _row_entropies(tf.cast(found, "int32"), rows, label_smoothing)
    return weighted_mean(ops.reshape(values, ops.shape(labels)), real, *weights)


def _row_entropies(labels, logits, smoothing):
    """The cross-entropy of each row: (n,) of labels (n,) and logits (n, C)."""
    places = tf.stack([tf.range(tf.shape(labels)[0]), labels], axis=1)
    each = smoothing / logits.shape[-1]  # of the label in every class

    @tf.custom_gradient
    def entropies(logits):
        shares = tf.nn.softmax(logits)
        # The largest logit's share is never 0, whatever the label's is.
        total = tf.reduce_max(logits, -1) - tf.math.log(tf.reduce_max(shares, -1))
        due = (1 - smoothing) * tf.gather_nd(logits, places)
        if smoothing:
            due += smoothing * tf.reduce_mean(logits, -1)

        def gradient(upstream):
            rest = shares - each if smoothing else shares
            rest = rest * upstream[:, None]
            return tf.tensor_scatter_nd_sub(rest, places, (1 - smoothing) * upstream)

        return total - due, gradient

    return entropies(logits)


def log_likelihood(labels, logits, weights):
    """The sum of the labels' log-probabilities, and that of the weights (...)."""
    values = keras.losses.sparse_categorical_crossentropy(
        ops.where(weights > 0, labels, 0), ops.cast(logits, "float32"), from_logits=True
    )
    return -ops.sum(values * weights), ops.sum(weights)


def correct(labels, logits, weights):
    """The weighted number of labels that have the largest logit, and the sum of the weights."""
    found = ops.cast(ops.argmax(logits, axis=-1), labels.dtype)
    return ops.sum(ops.cast(found == labels, "float32") * weights), ops.sum(weights)


class CrossEntropy(keras.losses.Loss):
    """`cross_entropy` for `compile(loss=...)`."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        return cross_entropy(y_true, y_pred, sample_weight)


def check_classes(logits):
    """Raises a ValueError for logits (..., 1): a softmax of them teaches nothing."""
    if logits.shape[-1] == 1:
        raise ValueError(
            f"logits of shape {tuple(logits.shape)} have one class, so that every loss of their "
            "softmax is 0; give 2 classes or more, or a squared error for a number."
        )
