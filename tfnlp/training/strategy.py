"""Where training runs: one device, or a copy on each of several."""

import functools

import keras
import tensorflow as tf
from absl import logging

from tfnlp.cluster import read_cluster
from tfnlp.errors import InputError, unknown_name
from tfnlp.losses import reads_parts
from tfnlp.training.accumulation import step_in_parts
from tfnlp.training.workers import several_workers

STRATEGIES = ("auto", "one_device", "mirrored", "multi_worker")


def make_strategy(name="auto"):
    """A `tf.distribute` strategy.

    Args:
        name: "one_device" for the first GPU, or the CPU where there is none; "mirrored" for
            a copy of the model on every GPU (on every logical CPU where there is no GPU);
            "multi_worker" for copies in several processes, on the GPUs of each (or its CPU), as
            the environment variable TF_CONFIG says; it has to be made before anything else is
            done by TensorFlow, and waits for all processes; "auto" for mirrored if there are
            several GPUs, else one device.

    Raises:
        InputError: for another name; if TF_CONFIG is missing or broken, or it is too late for
            processes to find each other.
    """
    if name not in STRATEGIES:
        raise unknown_name("strategy", name, STRATEGIES)
    if name == "multi_worker":
        # A single worker has nobody to wait for.
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
    """The one strategy on some devices: TensorFlow numbers the sums of each from the start, and
    takes those of a second one for the first one's.
    """
    return tf.distribute.MirroredStrategy(devices)


@functools.cache
def _multi_worker():
    # A line for each sum of each graph, at every start, on every worker.
    tf.get_logger().setLevel("WARNING")
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except RuntimeError as e:
        raise InputError(
            "strategy='multi_worker' was asked for after TensorFlow had begun to work, when "
            f"processes cannot find each other any more ({e}); make the strategy first."
        ) from None


class UnequalShares:
    """A mixin for a `keras.Model` whose batches the replicas may share unequally.

    Keras builds metrics and losses before the first step for the mean of all shares of a batch,
    which there is only of equal ones; here it is done for the first share. Under several workers
    Keras 3.15 takes the mean of what a step logs over an axis that scalars lack: they get one.
    A step is made in as many parts as `accumulation_steps` says.
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
    """A mixin for a `keras.Model` whose weights a compressor holds to a form as they train.

    `compressor` is a layer, such as a `distill.compression.pruning.Pruner`, or None: after each
    step `after_step(number)` brings the weights back to their form, and only once `complete()`
    an epoch may be the best. What it keeps in its weights is part of the run's state.
    """

    compressor = None

    def train_step(self, data):
        logs = super().train_step(data)
        if self.compressor is not None:
            self.compressor.after_step(self.optimizer.iterations)
        return logs


def replica_rows(count):
    """Where a replica's examples stand in the whole batch.

    Args:
        count: the replica's examples.

    Returns:
        The number of examples of the replicas before it, and of all replicas.
    """
    context = tf.distribute.get_replica_context()
    # Within the loop over a batch's parts replicas cannot speak with each other.
    if context.num_replicas_in_sync == 1 or reads_parts():
        return 0, count
    replica = context.replica_id_in_sync_group
    own = tf.one_hot(replica, context.num_replicas_in_sync, dtype="int32") * count
    counts = context.all_reduce(tf.distribute.ReduceOp.SUM, own)  # (replicas,)
    return tf.reduce_sum(counts[:replica]), tf.reduce_sum(counts)
