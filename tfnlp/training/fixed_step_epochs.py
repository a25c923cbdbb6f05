"""Epochs of a chosen number of steps."""

import hashlib
import itertools

from tfnlp.text import LengthBatches


class Rounds:
    """Batches in epochs of a fixed number of steps, continued across passes over the data.

    Args:
        batches: `LengthBatches`, or an object with its methods.
        steps: of an epoch.
    """

    dataset = LengthBatches.dataset

    def __init__(self, batches, steps):
        self.batches = batches
        self.steps = steps
        self.lengths = batches.lengths

    def __len__(self):
        return self.steps

    def epoch(self, epoch=0, skip=0):
        """Yield the batches of an epoch, without the first `skip`."""
        step, end = epoch * self.steps + skip, (epoch + 1) * self.steps
        while step < end:
            passed, number = divmod(step, len(self.batches))
            yield from itertools.islice(self.batches.epoch(passed, number), end - step)
            step += len(self.batches) - number

    def signature(self):
        """Return the `tf.TensorSpec`s of a batch."""
        return self.batches.signature()

    def fingerprint(self):
        """Return a SHA-256 of everything that decides the batches of every epoch."""
        return hashlib.sha256(f"{self.batches.fingerprint()} {self.steps}".encode()).hexdigest()
