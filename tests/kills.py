"""Trainings that are killed on their way, and comparisons of what going on gives."""

import contextlib
import json

import numpy as np
import safetensors
import tensorflow as tf

from tfnlp.text import LengthBatches
from tfnlp.training.run.run_folder import TIMES


class Killed(Exception):
    pass


# The exception of a generator reaches `fit` as an error of tf.data.
KILLS = (Killed, tf.errors.OpError)


@contextlib.contextmanager
def killed_after(batches, kind=LengthBatches):
    """Kills a training at the batch that is one more than so many; none where it is None."""
    original, seen = kind.batch, []

    def batch(self, indices):
        if self.shuffle:
            seen.append(1)
            if batches is not None and len(seen) > batches:
                raise Killed
        return original(self, indices)

    kind.batch = batch
    try:
        yield
    finally:
        kind.batch = original


def progress_of(run):
    """The progress in a run's state."""
    with safetensors.safe_open(run.state_path, "numpy") as file:
        return json.loads(file.metadata()["progress"])


def metrics_of(run):
    """The metrics of a run's epochs, without their times."""
    return [{k: v for k, v in m.items() if k not in TIMES} for m in run.metrics()]


def assert_same_weights(a, b):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


def largest_difference(a, b):
    return max(np.abs(x - y).max() for x, y in zip(a, b, strict=True))
