"""Epochs of a chosen number of steps."""

import hashlib
import itertools

from tfnlp.text import LengthBatches


class Rounds:
    """Batches in epochs of so many steps, which go on from pass to pass over the data.

    Args:
        batches: `LengthBatches`, or what has its methods.
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
        """Yields the batches of an epoch, without the first `skip`."""
        step, end = epoch * self.steps + skip, (epoch + 1) * self.steps
        while step < end:
            passed, number = divmod(step, len(self.batches))
            yield from itertools.islice(self.batches.epoch(passed, number), end - step)
            step += len(self.batches) - number

    def signature(self):
        """The `tf.TensorSpec`s of a batch."""
        return self.batches.signature()

    def fingerprint(self):
        """A SHA-256 of all that decides the batches of every epoch."""
        return hashlib.sha256(f"{self.batches.fingerprint()} {self.steps}".encode()).hexdigest()
