"""Trainings that are killed on their way, for tests of what going on gives."""

import contextlib

import tensorflow as tf

from tfnlp.text import LengthBatches


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
