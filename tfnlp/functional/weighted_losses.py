"""Losses as means over a whole batch, across all replicas.

Every loss is a sum of weighted entries (examples, tokens, pairs of tokens) divided by the sum of
the weights over all replicas. So training under a `tf.distribute` strategy equals training on one
device, however many entries each replica has, even none.
"""

import contextlib
import threading

import keras
import tensorflow as tf
from keras import ops

from tfnlp.functional.links import check_classes
from tfnlp.text.batching.batches import IGNORED


def weighted_mean(values, *weights):
    """Return the weighted mean of a batch's entries over all replicas together.

    Args:
        values: (B, ...), one value per entry.
        weights: of the entries, (B,) or with more of the axes of `values`; they are multiplied.
            None is ignored.

    Returns:
        A float32 scalar; 0 where all weights are 0. On one of n replicas it is the mean over n, as
        Keras' trainer expects it. Its gradient is that of the replica's own entries, and the sum
        of all replicas' gradients is the gradient of the mean.

    Raises:
        ValueError: if the weights do not fit the values.
    """
    values = ops.cast(values, "float32")
    weight = entry_weights(values, *weights)
    total, weight = ops.sum(values * weight), ops.sum(weight)
    if computes_part():
        return _thread.recorder.mean(total, weight)
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return with_entries(ops.divide_no_nan(total, weight), weight)
    fixed = [ops.stop_gradient(total), ops.stop_gradient(weight)]
    all_total, all_weight = context.all_reduce(tf.distribute.ReduceOp.SUM, fixed)
    local = ops.divide_no_nan(total, all_weight)
    share = ops.divide_no_nan(all_total, all_weight) / context.num_replicas_in_sync
    # All replicas return the same value, so that means over replicas or steps stay exact.
    mean = local + ops.stop_gradient(share - local)
    return with_entries(mean, all_weight / context.num_replicas_in_sync)


def with_entries(mean, count):
    """Return a mean that `entry_count` says the weight of."""
    mean.entries = count
    return mean


def entry_count(loss, otherwise):
    """Return the weight of a loss in a mean over batches, such as the number of its tokens.

    Args:
        loss: from `weighted_mean`; the sum of all replicas' weights is that of the batch.
        otherwise: the weight of any other loss, such as a sum of several.
    """
    return getattr(loss, "entries", otherwise)


# Each replica has its own thread, and so its own recorder.
_thread = threading.local()


def computes_part():
    """Return whether this thread computes losses of a part of a batch; see `means_by`."""
    return getattr(_thread, "recorder", None) is not None


class RecordedWeights:
    """Recorder of the weight of each `weighted_mean`, in order, to count a batch's parts."""

    def __init__(self):
        self.weights = []

    def mean(self, total, weight):
        self.weights.append(weight)
        return 0.0 * total


class KnownWeights:
    """Means of a part's entries over the weights of the whole batch, for training on the part.

    Args:
        weights: (n,), total weights of the n means in order, over all parts and replicas.
        scale: factor of the value of a part's mean, but not of its gradient, so that means over
            parts, weighted by examples, are those of the whole batch.
        replicas: number of replicas.
    """

    def __init__(self, weights, scale, replicas=1):
        self.weights = weights
        self.scale = scale
        self.replicas = replicas
        self.seen = 0

    def mean(self, total, weight):
        whole = self.weights[self.seen]
        mean = ops.divide_no_nan(total, whole)
        self.seen += 1
        # By examples the part is this share of the batch.
        share = ops.divide_no_nan(whole, self.scale * self.replicas)
        return with_entries(mean + ops.stop_gradient((self.scale - 1) * mean), share)


class RecordedSums:
    """Recorder of the sum and weight of each `weighted_mean`, for sums over evaluation batches."""

    def __init__(self):
        self._means = []

    def mean(self, total, weight):
        value = ops.divide_no_nan(total, weight)
        self._means.append((value, total, weight))
        return value

    def sum_and_weight(self, loss):
        """Return the weighted sum of entries and the sum of weights behind a `weighted_mean`.

        Raises:
            ValueError: if the loss did not come from `weighted_mean`.
        """
        for value, total, weight in self._means:
            if value is loss:
                return total, weight
        raise ValueError("A loss is no `weighted_mean` of tfnlp, so that its weight is unknown.")


@contextlib.contextmanager
def means_by(recorder):
    """Compute this thread's `weighted_mean` by an object such as `KnownWeights`."""
    _thread.recorder = recorder
    try:
        yield recorder
    finally:
        _thread.recorder = None


def entry_weights(values, *weights):
    """Return the product of the weights of `weighted_mean`, float32 in the shape of `values`."""
    product = ops.ones_like(values, dtype="float32")
    for weight in weights:
        if weight is not None:
            missing = len(values.shape) - len(weight.shape)
            # Keras also allows weights (B, 1) for entries (B,).
            axes = [1] * missing
            shape = (*ops.shape(weight), *axes) if missing >= 0 else ops.shape(values)
            product = product * ops.reshape(ops.cast(weight, "float32"), shape)
    return product


def mean_over_replicas(loss):
    """Return the mean over all replicas from a replica's share `loss`, for a metric."""
    context = tf.distribute.get_replica_context()
    return loss if context is None else loss * context.num_replicas_in_sync


def squared_error(labels, predictions, *weights):
    """Return the mean squared error of predictions (B,), for labels (B,) or (B, 1).

    `weights` are those of `weighted_mean`.
    """
    predictions = ops.cast(predictions, "float32")
    labels = ops.reshape(labels, ops.shape(predictions))
    return weighted_mean(ops.square(predictions - labels), *weights)


def focal(log_probabilities, gamma):
    """Return the focal loss of the probability p of what is right: -(1 - p)^gamma log p.

    Lin et al. 2017, 'Focal Loss for Dense Object Detection', eq. 4; gamma 0 is the cross-entropy.

    Args:
        log_probabilities: log p, at most 0, of any shape.
        gamma: at least 0.
    """
    if not gamma:
        return -log_probabilities
    # The power of 0 has no finite gradient for a gamma below 1.
    rest = ops.maximum(-ops.expm1(log_probabilities), keras.config.epsilon())
    return -ops.power(rest, gamma) * log_probabilities


def binary_cross_entropy(labels, logits, *weights, positive_weights=None, gamma=0.0):
    """Return the mean cross-entropy of labels that are independent of each other.

    It is -(w y log p + (1 - y) log(1 - p)) with p = sigmoid(logit), as `BCEWithLogitsLoss` of
    PyTorch has it; with `gamma` each logarithm is that of `focal`.

    Args:
        labels: (B, C), y: 1 where a label applies, else 0; or a probability.
        logits: (B, C).
        weights: as in `weighted_mean`.
        positive_weights: (C,), w of each label; 1 where None.
        gamma: of the focal loss.
    """
    labels, logits = ops.cast(labels, "float32"), ops.cast(logits, "float32")
    w = 1.0 if positive_weights is None else ops.convert_to_tensor(positive_weights, "float32")
    applies, not_so = (focal(ops.log_sigmoid(x), gamma) for x in (logits, -logits))
    return weighted_mean(w * labels * applies + (1 - labels) * not_so, *weights)


def cross_entropy(labels, logits, *weights, class_weights=None, gamma=0.0):
    """Return the mean cross-entropy of labels (...) and logits (..., C), ignoring the label -100.

    Args:
        labels: integers.
        logits: of 2 or more classes.
        weights: as in `weighted_mean`.
        class_weights: (C,), of the entries with each label; None for 1.
        gamma: of the loss of each entry, which is `focal`.

    Raises:
        ValueError: if the logits have one class, whose cross-entropy is always 0.
    """
    check_classes(logits)
    labels = ops.convert_to_tensor(labels)
    real = ops.not_equal(labels, IGNORED)
    values = keras.losses.sparse_categorical_crossentropy(
        ops.where(real, labels, 0), ops.cast(logits, "float32"), from_logits=True
    )
    if class_weights is not None:
        class_weights = ops.convert_to_tensor(class_weights, "float32")
        weights = *weights, ops.take(class_weights, ops.where(real, labels, 0))
    return weighted_mean(focal(-values, gamma), real, *weights)


def soft_cross_entropy(probabilities, logits, *weights, class_weights=None, gamma=0.0):
    """Return the mean cross-entropy of label probabilities (..., C) and logits (..., C).

    It is that of PyTorch's `CrossEntropyLoss` for targets that are probabilities.

    Args:
        probabilities, logits: of 2 or more classes.
        weights: as in `weighted_mean`.
        class_weights: (C,), of each class's part of an entry; None for 1.
        gamma: of the loss of each part, which is `focal`.
    """
    check_classes(logits)
    parts = focal(ops.log_softmax(ops.cast(logits, "float32")), gamma)
    parts = ops.cast(probabilities, "float32") * parts
    if class_weights is not None:
        parts = parts * ops.convert_to_tensor(class_weights, "float32")
    return weighted_mean(ops.sum(parts, axis=-1), *weights)


def token_cross_entropy(labels, logits, *weights, label_smoothing=0.0):
    """Return `cross_entropy` for many classes, such as a vocabulary, in a third of the CPU time.

    The probabilities are computed once and are all that the gradient needs. With label smoothing e
    each of the V classes has the target e / V, and the label 1 - e more (Szegedy et al. 2016,
    section 7), as in `LabelSmoother` of `transformers` and in PyTorch. fairseq spreads e over the
    other V - 1 classes.

    Args:
        labels, logits, weights: as in `cross_entropy`.
        label_smoothing: e, at least 0 and below 1.
    """
    labels = ops.convert_to_tensor(labels)
    real = ops.not_equal(labels, IGNORED)
    rows = ops.reshape(ops.cast(logits, "float32"), (-1, logits.shape[-1]))
    classes = ops.reshape(ops.where(real, labels, 0), (-1,))
    values = _row_entropies(tf.cast(classes, "int32"), rows, label_smoothing)
    return weighted_mean(ops.reshape(values, ops.shape(labels)), real, *weights)


def _row_entropies(labels, logits, smoothing):
    """Return the cross-entropy of each row, (n,), for labels (n,) and logits (n, C)."""
    places = tf.stack([tf.range(tf.shape(labels)[0]), labels], axis=1)
    each = smoothing / logits.shape[-1]  # smoothed target of every class

    @tf.custom_gradient
    def entropies(logits):
        shares = tf.nn.softmax(logits)
        # The largest logit's probability is never 0, unlike the label's.
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
    """Return the sum of the labels' log-probabilities and the sum of the weights (...)."""
    values = keras.losses.sparse_categorical_crossentropy(
        ops.where(weights > 0, labels, 0), ops.cast(logits, "float32"), from_logits=True
    )
    return -ops.sum(values * weights), ops.sum(weights)


def correct(labels, logits, weights):
    """Return the weighted number of labels with the largest logit and the sum of the weights."""
    predicted = ops.cast(ops.argmax(logits, axis=-1), labels.dtype)
    return ops.sum(ops.cast(predicted == labels, "float32") * weights), ops.sum(weights)
