"""Scheduled sampling: batches that mark where the decoder reads its own predictions."""

import hashlib

import numpy as np

from tfnlp.text.batches import LengthBatches


class ScheduledSampling:
    """`TranslationBatches` with the extra input `feed_predictions`, (B, T) int32.

    It is 1 at a random share of positions, where the decoder reads its own predictions. The share
    rises linearly from 0 at the first step to `rate` at the last (Bengio et al. 2015,
    'Scheduled Sampling', section 2.4). The draw depends on the seed, the epoch and the batch
    number alone.

    Args:
        batches: `TranslationBatches`.
        rate: the share at the last step.
        epochs: the number of training epochs.
    """

    dataset = LengthBatches.dataset

    def __init__(self, batches, rate, epochs):
        self.batches, self.rate, self.epochs = batches, rate, epochs
        self.lengths = batches.lengths

    def __len__(self):
        return len(self.batches)

    def epoch(self, epoch=0, skip=0):
        """Yield the batches of an epoch, without the first `skip`."""
        last = max(self.epochs * len(self) - 1, 1)
        for number, (inputs, labels) in enumerate(self.batches.epoch(epoch, skip), start=skip):
            rng = np.random.default_rng([self.batches.seed, epoch, number])
            share = self.rate * min((epoch * len(self) + number) / last, 1.0)
            sampled = (rng.random(labels.shape) < share).astype("int32")
            yield inputs | {"feed_predictions": sampled}, labels

    def signature(self):
        """Return the `tf.TensorSpec`s of a batch."""
        inputs, labels = self.batches.signature()
        return inputs | {"feed_predictions": labels}, labels

    def fingerprint(self):
        """Return a SHA-256 of all that determines the batches, except the number of epochs."""
        return hashlib.sha256(f"{self.batches.fingerprint()} {self.rate}".encode()).hexdigest()
