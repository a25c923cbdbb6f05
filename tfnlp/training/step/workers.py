"""Coordination of worker processes that train one model."""

import contextlib
import functools
import json
import re

import numpy as np
import tensorflow as tf

from tfnlp.training.step.worker_cluster import read_cluster
from tfnlp.utils.errors import InputError


def several_workers(strategy):
    """Return whether a strategy has replicas in other processes."""
    many = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
    return many and strategy.extended._in_multi_worker_mode()  # as Keras asks


def is_chief(name):
    """Return whether this process writes the run folder, for a strategy name.

    Raises:
        InputError: as `read_cluster`.
    """
    return name != "multi_worker" or read_cluster().index == 0


def shared_dataset(strategy, data, batches):
    """Return a strategy's dataset from a dataset of whole batches.

    With several workers each makes all batches and takes its own rows of them, so that a batch
    equals that of a single device. Shares differ by one row at most.

    Args:
        strategy: the strategy to read under.
        data: a `tf.data.Dataset`; the first axis of each tensor is that of the examples.
        batches: number of batches.

    Returns:
        The dataset unchanged, or a `tf.distribute.DistributedDataset`, whose passes Keras counts
        by `steps_per_epoch=batches`.
    """
    if not several_workers(strategy):
        return data

    def shares_of(context):
        replicas = context.num_replicas_in_sync
        local = replicas // context.num_input_pipelines
        first = context.input_pipeline_id * local

        def shares(*batch):
            rows = tf.shape(tf.nest.flatten(batch)[0])[0]

            def share_of(replica):
                share = slice(rows * replica // replicas, rows * (replica + 1) // replicas)
                return tf.data.Dataset.from_tensors(
                    tf.nest.map_structure(lambda v: v[share], batch)
                )

            return functools.reduce(
                lambda a, b: a.concatenate(b), [share_of(first + i) for i in range(local)]
            )

        count = tf.data.experimental.assert_cardinality(batches * local)
        return data.flat_map(shares).apply(count).prefetch(4)

    return strategy.distribute_datasets_from_function(shares_of)


def any_worker(strategy, value):
    """Return whether a value is true on any worker; all must call it at the same step."""
    if not several_workers(strategy):
        return value
    return _total(strategy, float(value)) > 0


def wait_for_all(strategy):
    """Block until all workers have called it."""
    if several_workers(strategy):
        _total(strategy, 0.0)


def _total(strategy, number):
    return float(_summing(strategy)(tf.constant(number)))


@functools.cache
def _summing(strategy):
    return tf.function(
        lambda number: strategy.reduce("SUM", strategy.run(tf.identity, (number,)), axis=None)
    )


@contextlib.contextmanager
def plain_errors(strategy, batches):
    """Convert TensorFlow's errors about the batches or a lost worker to an InputError."""
    try:
        yield
    except tf.errors.OpError as e:
        if getattr(batches, "error", None) is not None:
            raise batches.error from None
        if not several_workers(strategy) or "/job:" not in e.message:
            raise
        reason = re.search(r"aborted by:\s*(.*?)[\s:.]*$", e.message, re.MULTILINE)
        raise InputError(
            "The training cannot go on without another worker "
            f"({reason[1] if reason else type(e).__name__}); start all of them again to resume."
        ) from None


def check_same(strategy, facts):
    """Raise an InputError on all workers if one was started with other facts than the first.

    Args:
        strategy: of the training.
        facts: a dict of dicts of JSON values, by name, such as {"flags": {"epochs": 3}}.
    """
    if not several_workers(strategy):
        return
    facts_by_worker = [json.loads(text) for text in _gathered(strategy, json.dumps(facts))]
    for number, worker_facts in enumerate(facts_by_worker):
        for name, first in facts_by_worker[0].items():
            other = worker_facts[name]
            for key in sorted(first.keys() | other):
                if first.get(key) != other.get(key):
                    raise InputError(
                        f"The workers were not started alike: of the {name}, `{key}` is "
                        f"{first.get(key)!r} for the first and {other.get(key)!r} for number "
                        f"{number} (counted from 0); start all with the same flags, files and "
                        "run folder, which all have to see."
                    )


def _gathered(strategy, text):
    """Return the texts of all replicas, in their order."""
    code = np.frombuffer(text.encode(), np.uint8).astype("int32")

    def gather():
        context = tf.distribute.get_replica_context()
        lengths = context.all_gather(tf.constant([len(code)]), axis=0)
        return lengths, context.all_gather(tf.constant(code), axis=0)

    gathered = tf.function(lambda: strategy.run(gather))()
    lengths, codes = (strategy.experimental_local_results(v)[0].numpy() for v in gathered)
    parts = np.split(codes, np.cumsum(lengths)[:-1])
    return [part.astype(np.uint8).tobytes().decode() for part in parts]
