"""Gradient accumulation for losses that compare the examples of a batch with each other."""

import keras
import tensorflow as tf
from keras.src.trainers.data_adapters.data_adapter_utils import unpack_x_y_sample_weight

from tfnlp.models import seed_variables
from tfnlp.training.step.accumulation import sum_over_parts
from tfnlp.utils.errors import InputError


def cached_gradients(model, data, parts):
    """Return a batch's gradients, with the activations of only one part in memory at a time.

    Gao et al. 2021, 'Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup',
    section 3.2: a first pass computes all outputs, from which the loss and its gradient by them
    follow; a second one takes each part's outputs again, with the same dropout, and passes that
    gradient on.

    Args:
        model: a compiled `FineTuner` of a task with one output.
        data: a replica's batch; the first axis of each tensor is that of the examples.
        parts: number of parts; the examples are divided as evenly as possible.

    Returns:
        A list with an entry per trainable weight, None where the loss does not depend on it. The
        metrics are updated.

    Raises:
        InputError: for a model that is fake-quantised.
    """
    if any(getattr(layer, "is_fake_quantized", False) for layer in model._flatten_layers()):
        # Its ranges follow the training, and a pass without assignments keeps none of them.
        raise InputError(
            "quantization_aware does not go with accumulation_steps and a loss that compares the "
            "examples of a batch; leave out one."
        )
    x, y, sample_weight = unpack_x_y_sample_weight(data)
    rows = tf.shape(tf.nest.flatten(x)[0])[0]
    seeds = seed_variables(model.model)
    first = [v.value + 0 for v in seeds]
    (name,) = model.kind.reads

    def cut(value, number):
        return value[rows * number // parts : rows * (number + 1) // parts]

    def run(number):
        # Dropout of the part's own; assignments, such as to seeds, are discarded.
        draws = [value + tf.cast([number, 0], value.dtype) for value in first]
        with keras.StatelessScope(zip(seeds, draws, strict=True)):
            return model({k: cut(v, number) for k, v in x.items()}, training=True)[name]

    shape = model.batch_model.output[name].shape

    def keep(number, outputs):
        return number + 1, outputs.write(number, run(number))

    outputs = tf.TensorArray("float32", parts, infer_shape=False, element_shape=shape)
    _, outputs = tf.while_loop(
        lambda number, _: number < parts, keep, (0, outputs), parallel_iterations=1
    )
    y_pred = {name: outputs.concat()}
    with tf.GradientTape() as tape:
        tape.watch(y_pred)
        loss = model.compute_loss(x, y, y_pred, sample_weight, training=True)
        scaled = model.optimizer.scale_loss(loss)
    by_output = tape.gradient(scaled, y_pred[name])
    model.update_metrics(x, y, y_pred, sample_weight, loss)
    variables = model.trainable_weights

    def compute(number):
        with tf.GradientTape() as tape:
            output = run(number)
        return tape.gradient(output, variables, output_gradients=cut(by_output, number)), 0.0

    gradients, _ = sum_over_parts(variables, parts, compute)
    for seed, value in zip(seeds, first, strict=True):
        seed.assign(value + tf.cast([parts, 0], value.dtype))
    return gradients
