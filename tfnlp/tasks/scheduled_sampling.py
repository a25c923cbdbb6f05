"""Scheduled sampling: batches that mark where the decoder reads its own predictions."""

import hashlib

import numpy as np

from tfnlp.text.batches import LengthBatches


class OwnTokens:
    """`PairBatches` with the extra input `own_tokens` (B, T), 1 at a random share of positions.

    The share rises linearly from 0 at the first step to `rate` at the last (Bengio et al. 2015,
    'Scheduled Sampling', section 2.4). The draw depends on the seed, the epoch and the batch
    number alone.

    Args:
        batches: `PairBatches`.
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
            own = (rng.random(labels.shape) < share).astype("int32")
            yield inputs | {"own_tokens": own}, labels

    def signature(self):
        """Return the `tf.TensorSpec`s of a batch."""
        inputs, labels = self.batches.signature()
        return inputs | {"own_tokens": labels}, labels

    def fingerprint(self):
        """Return a SHA-256 of all that determines the batches, except the number of epochs."""
        return hashlib.sha256(f"{self.batches.fingerprint()} {self.rate}".encode()).hexdigest()
