"""Gradient accumulation: a step in sequential parts that equals the whole batch's step."""

import keras
import tensorflow as tf
from keras.src.trainers.data_adapters.data_adapter_utils import unpack_x_y_sample_weight

from tfnlp.functional.weighted_losses import KnownWeights, RecordedWeights, means_by
from tfnlp.training.step.non_finite_steps import SkipsNonFiniteSteps


def accumulated_gradients(model, data, parts):
    """Return a batch's gradients, with the activations of only one part in memory at a time.

    If parts have different numbers of entries, such as masked tokens, the mean of their means is
    not the mean of all entries. So a first pass counts the weights of all losses. TensorFlow
    computes only what these depend on, which includes no matrix product of the model. Then each
    part's gradients are those of its own entries over the weights of all parts and replicas.

    Args:
        model: a compiled `Trainer` whose losses are means by `weighted_mean`.
        data: a replica's batch; the first axis of each tensor is that of the examples.
        parts: number of parts; the examples are divided as evenly as possible.

    Returns:
        A list with an entry per trainable weight, None where the loss does not depend on it.
        Metrics are updated by each part.

    Raises:
        ValueError: if a loss does not use `weighted_mean`.
    """
    replicas = tf.distribute.get_replica_context().num_replicas_in_sync
    flat = [v for v in tf.nest.flatten(data) if v is not None]
    rows = tf.shape(flat[0])[0]

    def part(number):
        share = slice(rows * number // parts, rows * (number + 1) // parts)
        cut = tf.nest.map_structure(lambda v: None if v is None else v[share], data)
        return unpack_x_y_sample_weight(cut)

    weights = _total_weights(model, part, parts)
    all_rows = tf.cast(_sum_over_replicas(rows), "float32")
    variables = model.trainable_weights

    def compute(number):
        x, y, sample_weight = part(number)
        count = tf.shape(tf.nest.flatten(x)[0])[0]
        scale = tf.math.divide_no_nan(all_rows / replicas, tf.cast(count, "float32"))
        with means_by(KnownWeights(weights, scale, replicas)), tf.GradientTape() as tape:
            y_pred = model(x, training=True)
            part_loss = model.compute_loss(x, y, y_pred, sample_weight, training=True)
            scaled = model.optimizer.scale_loss(part_loss)
        model.update_metrics(x, y, y_pred, sample_weight, part_loss)
        return tape.gradient(scaled, variables), tf.math.divide_no_nan(part_loss, scale)

    gradients, loss = sum_over_parts(variables, parts, compute)
    if isinstance(model, SkipsNonFiniteSteps):
        finite = tf.math.is_finite(model.watched(_sum_over_replicas(loss) / replicas))
        gradients = [None if g is None else tf.where(finite, g, float("nan")) for g in gradients]
    return gradients


def sum_over_parts(variables, parts, compute):
    """Return the sums of the parts' gradients and of their losses, computed one after another.

    Args:
        variables: of the gradients.
        parts: number of parts.
        compute: function from the number of a part to its gradients, a list with None where its
            loss does not depend on a variable, and its loss.

    Returns:
        A list with an entry per variable, None where no loss depends on it, and a scalar.
    """
    missing = set()

    def add(number, loss, gradients):
        new, part_loss = compute(number)
        missing.update(i for i, g in enumerate(new) if g is None)
        sums = [
            old if g is None else old + tf.cast(tf.convert_to_tensor(g), old.dtype)
            for old, g in zip(gradients, new, strict=True)
        ]
        return number + 1, loss + part_loss, sums

    start = (tf.constant(0), tf.constant(0.0), [tf.zeros(v.shape, v.dtype) for v in variables])
    _, loss, gradients = tf.while_loop(
        lambda number, *_: number < parts, add, start, parallel_iterations=1
    )
    return [None if i in missing else g for i, g in enumerate(gradients)], loss


def _total_weights(model, part, parts):
    """Return the weights of all means in the loss, in order, over all parts and replicas."""

    def count(number):
        x, y, sample_weight = part(number)
        # Discard assignments of this pass, such as to metrics or seeds.
        with means_by(RecordedWeights()) as recorder, keras.StatelessScope():
            model.compute_loss(x, y, model(x, training=True), sample_weight, training=True)
        if not recorder.weights:
            raise ValueError(
                f"accumulation_steps={parts} needs losses that are made of "
                "tfnlp.functional.weighted_losses.weighted_mean; this model has others."
            )
        return tf.stack(recorder.weights)

    signature = tf.TensorSpec((None,), "float32")
    weights = tf.map_fn(
        count, tf.range(parts), fn_output_signature=signature, parallel_iterations=1
    )
    return _sum_over_replicas(tf.reduce_sum(weights, 0))


def _sum_over_replicas(values):
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync == 1:
        return values
    return context.all_reduce(tf.distribute.ReduceOp.SUM, values)
