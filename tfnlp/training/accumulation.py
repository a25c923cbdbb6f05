"""Gradient accumulation: a step in sequential parts that equals the whole batch's step."""

import keras
import tensorflow as tf
from keras.src.trainers.data_adapters.data_adapter_utils import unpack_x_y_sample_weight

from tfnlp.weighted_losses import CountedWeights, KnownWeights, in_parts, whole


def step_in_parts(model, data, parts):
    """Run `keras.Model.train_step` with the activations of only one part in memory at a time.

    If parts have different numbers of entries, such as hidden tokens, the mean of their means is
    not the mean of all entries. So a first pass counts the weights of all losses. TensorFlow
    computes only what these depend on, which includes no matrix product of the model. Then each
    part's gradients are those of its own entries over the weights of all parts and replicas.

    Args:
        model: a compiled `keras.Model` whose losses use `tfnlp.weighted_losses.weighted_mean`.
        data: a replica's batch; the first axis of each tensor is that of the examples.
        parts: number of parts; the examples are divided as evenly as possible.

    Returns:
        The metrics, a dict.

    Raises:
        ValueError: if a loss does not use `weighted_mean`.
    """
    context = tf.distribute.get_replica_context()
    replicas = context.num_replicas_in_sync
    flat = [v for v in tf.nest.flatten(data) if v is not None]
    rows = tf.shape(flat[0])[0]

    def total(values):
        return context.all_reduce(tf.distribute.ReduceOp.SUM, values) if replicas > 1 else values

    def part(number):
        own = slice(rows * number // parts, rows * (number + 1) // parts)
        cut = tf.nest.map_structure(lambda v: None if v is None else v[own], data)
        return unpack_x_y_sample_weight(cut)

    def loss_of(x, y, weights):
        y_pred = model(x, training=True)
        return y_pred, model._compute_loss(x, y, y_pred, weights, training=True)

    def count(number):
        # Discard assignments of this pass, such as to metrics or seeds.
        with in_parts(CountedWeights()) as counted, keras.StatelessScope():
            loss_of(*part(number))
        if not counted.weights:
            raise ValueError(
                f"accumulation_steps={parts} needs losses that are made of "
                "tfnlp.weighted_losses.weighted_mean; this model has others."
            )
        return tf.stack(counted.weights)

    signature = tf.TensorSpec((None,), "float32")
    weights = tf.map_fn(
        count, tf.range(parts), fn_output_signature=signature, parallel_iterations=1
    )
    weights = total(tf.reduce_sum(weights, 0))
    all_rows = tf.cast(total(rows), "float32")
    variables = model.trainable_weights
    missing = set()

    def add(number, loss, gradients):
        x, y, sample_weight = part(number)
        count = tf.shape(tf.nest.flatten(x)[0])[0]
        scale = tf.math.divide_no_nan(all_rows / replicas, tf.cast(count, "float32"))
        with in_parts(KnownWeights(weights, scale)), tf.GradientTape() as tape:
            y_pred, found = loss_of(x, y, sample_weight)
            scaled = model.optimizer.scale_loss(found)
        model._loss_tracker.update_state(whole(found), sample_weight=count)
        model.compute_metrics(x, y, y_pred, sample_weight=sample_weight)
        new = tape.gradient(scaled, variables)
        missing.update(i for i, g in enumerate(new) if g is None)
        sums = [
            old if g is None else old + tf.cast(tf.convert_to_tensor(g), old.dtype)
            for old, g in zip(gradients, new, strict=True)
        ]
        return number + 1, loss + tf.math.divide_no_nan(found, scale), sums

    start = (tf.constant(0), tf.constant(0.0), [tf.zeros(v.shape, v.dtype) for v in variables])
    _, loss, gradients = tf.while_loop(
        lambda number, *_: number < parts, add, start, parallel_iterations=1
    )
    if hasattr(model, "watched"):  # `tfnlp.training.non_finite_steps` checks whole steps
        spoiled = tf.math.is_finite(model.watched(total(loss) / replicas))
        gradients = [tf.where(spoiled, g, float("nan")) for g in gradients]
    gradients = [None if i in missing else g for i, g in enumerate(gradients)]
    model.optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return model.get_metrics_result()
