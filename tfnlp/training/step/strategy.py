"""Distribution strategies: one device, or replicas on several."""

import functools

import tensorflow as tf
from absl import logging

from tfnlp.functional.weighted_losses import computes_part
from tfnlp.training.step.worker_cluster import read_cluster
from tfnlp.utils.errors import InputError, unknown_name

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
                "Worker %d waits for all %d workers: %s. Until they connect TensorFlow takes no "
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
            "strategy='multi_worker' must be made before any other TensorFlow operation, or "
            f"processes cannot connect ({e}); make the strategy first."
        ) from None


def replica_rows(count):
    """Return the number of examples of the replicas before this one, with `count`, and all."""
    context = tf.distribute.get_replica_context()
    # Replicas cannot communicate within the loop over a batch's parts.
    if context.num_replicas_in_sync == 1 or computes_part():
        return 0, count
    replica = context.replica_id_in_sync_group
    shares = tf.one_hot(replica, context.num_replicas_in_sync, dtype="int32") * count
    counts = context.all_reduce(tf.distribute.ReduceOp.SUM, shares)  # (replicas,)
    return tf.reduce_sum(counts[:replica]), tf.reduce_sum(counts)
