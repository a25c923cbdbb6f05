"""Distribution strategies: one device, or replicas on several."""

import functools

import keras
import tensorflow as tf
from absl import logging

from tfnlp.training.accumulation import step_in_parts
from tfnlp.training.workers import several_workers
from tfnlp.utils.errors import InputError, unknown_name
from tfnlp.utils.worker_cluster import read_cluster
from tfnlp.weighted_losses import reads_parts

STRATEGIES = ("auto", "one_device", "mirrored", "multi_worker")


def make_strategy(name="auto"):
    """Return a `tf.distribute` strategy.

    Args:
        name: "one_device" for the first GPU, or the CPU where there is none; "mirrored" for a
            replica on every GPU (on every logical CPU where there is no GPU); "multi_worker" for
            replicas in several processes, on the GPUs of each (or its CPU), as the environment
            variable TF_CONFIG says. It must be made before any other TensorFlow operation, and
            waits for all processes. "auto" for mirrored if there are several GPUs, else one
            device.

    Raises:
        InputError: if the name is unknown, TF_CONFIG is missing or broken, or TensorFlow is
            already initialised, so that processes cannot connect.
    """
    if name not in STRATEGIES:
        raise unknown_name("strategy", name, STRATEGIES)
    if name == "multi_worker":
        # A single worker needs no cluster.
        cluster = read_cluster()
        if len(cluster.workers) > 1:
            logging.info(
                "Worker %d waits for all %d workers: %s. Until they are there TensorFlow takes no "
                "signal but SIGKILL.",
                cluster.index,
                len(cluster.workers),
                ", ".join(cluster.workers),
            )
            return _multi_worker()
        name = "auto"
    gpus = tf.config.list_logical_devices("GPU")
    if name == "auto":
        name = "mirrored" if len(gpus) > 1 else "one_device"
    if name == "one_device":
        return tf.distribute.get_strategy()  # TensorFlow's default places all on one device
    return _mirrored(tuple(d.name for d in gpus or tf.config.list_logical_devices("CPU")))


@functools.cache
def _mirrored(devices):
    """Return the only strategy for these devices.

    TensorFlow numbers the reductions of each strategy from the start, and would confuse those of
    two.
    """
    return tf.distribute.MirroredStrategy(devices)


@functools.cache
def _multi_worker():
    # Otherwise TensorFlow logs a line for each reduction of each graph, on every worker.
    tf.get_logger().setLevel("WARNING")
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except RuntimeError as e:
        raise InputError(
            "strategy='multi_worker' was asked for after TensorFlow had begun to work, when "
            f"processes cannot find each other any more ({e}); make the strategy first."
        ) from None


class UnequalShares:
    """Mixin for a `keras.Model` whose replicas may have unequal shares of a batch.

    Keras builds metrics and losses before the first step from the mean of all shares of a batch,
    which requires equal ones; here they are built from the first share. With several workers Keras
    3.15 averages a step's logs over an axis that scalars lack, so they get one. A step is made in
    `accumulation_steps` parts.
    """

    accumulation_steps = 1

    def train_step(self, data):
        if self.accumulation_steps == 1:
            return super().train_step(data)
        return step_in_parts(self, data, self.accumulation_steps)

    def _make_function(self, step_function):
        if not several_workers(self.distribute_strategy):
            return super()._make_function(step_function)

        def step(data):
            return keras.tree.map_structure(lambda value: value[None], step_function(data))

        return super()._make_function(step)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        strategy = self.distribute_strategy
        if iterator is not None and strategy.num_replicas_in_sync > 1:
            _, _, batches = next(iter(iterator))
            data_batch = keras.tree.map_structure(
                lambda value: strategy.experimental_local_results(value)[0], next(batches)
            )
            iterator = None
        super()._maybe_symbolic_build(iterator, data_batch)


class CompressedSteps:
    """Mixin for a `keras.Model` whose weights a compressor constrains during training.

    `compressor` is a layer, such as a `distill.compression.weight_pruning.Pruner`, or None. After
    each step `after_step(number)` restores the constraint on the weights. An epoch may be the best
    only once `complete()` is true. The compressor's weights are part of the run's state.
    """

    compressor = None

    def train_step(self, data):
        logs = super().train_step(data)
        if self.compressor is not None:
            self.compressor.after_step(self.optimizer.iterations)
        return logs


def replica_rows(count):
    """Return the position of a replica's examples in the whole batch.

    Args:
        count: the replica's examples.

    Returns:
        The number of examples of the replicas before it, and of all replicas.
    """
    context = tf.distribute.get_replica_context()
    # Replicas cannot communicate within the loop over a batch's parts.
    if context.num_replicas_in_sync == 1 or reads_parts():
        return 0, count
    replica = context.replica_id_in_sync_group
    own = tf.one_hot(replica, context.num_replicas_in_sync, dtype="int32") * count
    counts = context.all_reduce(tf.distribute.ReduceOp.SUM, own)  # (replicas,)
    return tf.reduce_sum(counts[:replica]), tf.reduce_sum(counts)
