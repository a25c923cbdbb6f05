"""Source-target pairs in batches with a token limit, and marks for scheduled sampling."""

import hashlib

import numpy as np
import tensorflow as tf

from tfnlp.text.batching.batches import IGNORED
from tfnlp.text.batching.epoch_batches import EpochBatches


class TranslationBatches(EpochBatches):
    """Padded batches of pairs of similar length with a token limit (Vaswani et al., 5.1).

    A batch of B pairs, padded to S source and T target tokens, counts B * (S + T) tokens. Pairs
    are sorted by the longer side and cut into batches; pairs of equal sizes are shuffled in each
    epoch. So every epoch has batches of the same sizes, in a new order. Both orders depend on the
    seed and the epoch number alone.

    Args:
        sources, targets: as many `Encodings`, which end with the end token.
        max_tokens: the maximum number of tokens of a batch, including padding; no pair may be
            longer.
        pad_token_id: the id of padding.
        start_token_id: the first input of the decoder.
        shuffle: whether each epoch has its own order; else batches are sorted by length.
        seed: the seed of the orders.
    """

    def __init__(
        self, sources, targets, max_tokens, pad_token_id, start_token_id, shuffle=False, seed=0
    ):
        self.sources, self.targets = sources, targets
        self._sizes = np.stack([sources.lengths, targets.lengths], axis=1)  # (pairs, 2)
        self.max_tokens = max_tokens
        self.pad_token_id, self.start_token_id = pad_token_id, start_token_id
        self.shuffle, self.seed = shuffle, seed
        self._ends = self._batch_ends(self._sorted(np.arange(len(sources))))

    @property
    def lengths(self):
        """The length of the longer side of each pair, at most the positions of the model."""
        return self._sizes.max(axis=1)

    def __len__(self):
        """Return the number of batches in an epoch."""
        return len(self._ends)

    def _sorted(self, ranks):
        """Return the pairs sorted by size, and by `ranks` among equal sizes."""
        return np.lexsort((ranks, *self._sizes.T, self.lengths))

    def _batch_ends(self, order):
        """Return where each batch of the sorted pairs ends; it depends on their sizes alone."""
        ends, begin, longest = [], 0, np.zeros(2, "int64")
        for i, size in enumerate(self._sizes[order]):
            longest = np.maximum(longest, size)
            if (i - begin + 1) * longest.sum() > self.max_tokens:
                ends.append(i)
                begin, longest = i, size
        return [*ends, len(order)]

    def batch_indices(self, epoch=0):
        """Return the indices of each batch of an epoch, a list of arrays."""
        rng = np.random.default_rng([self.seed, epoch])
        count = len(self._sizes)
        ranks = rng.permutation(count) if self.shuffle else np.arange(count)
        batches = np.split(self._sorted(ranks), self._ends[:-1])
        if self.shuffle:
            rng.shuffle(batches)
        return batches

    def batch(self, indices):
        """Return the inputs and labels of some pairs.

        Returns:
            A dict of `encoder_token_ids` and `encoder_padding_mask`, (B, S) int32, and
            `decoder_token_ids`, (B, T) int32, the start token followed by the target without its
            last token; and the labels (B, T) int32, the target, with `IGNORED` at padding.
        """
        source = self.sources.padded(indices, self.pad_token_id)
        target = self.targets.padded(indices, self.pad_token_id)
        ids, real = target["token_ids"], target["padding_mask"] > 0
        before = np.full_like(ids, self.pad_token_id)
        before[:, 0] = self.start_token_id
        before[:, 1:][real[:, 1:]] = ids[:, :-1][real[:, 1:]]
        inputs = {
            "encoder_token_ids": source["token_ids"],
            "encoder_padding_mask": source["padding_mask"],
            "decoder_token_ids": before,
        }
        return inputs, np.where(real, ids, IGNORED).astype("int32")

    plan = batch_indices

    def make(self, plan, epoch, number):
        return self.batch(plan[number])

    def signature(self):
        """Return the `tf.TensorSpec`s of a batch, in the structure of `batch`."""
        ids = tf.TensorSpec((None, None), "int32")
        names = ("encoder_token_ids", "encoder_padding_mask", "decoder_token_ids")
        return dict.fromkeys(names, ids), ids

    def fingerprint(self):
        """Return a SHA-256 of all that determines the batches of every epoch."""
        settings = [self.max_tokens, self.pad_token_id, self.start_token_id, self.shuffle]
        parts = (self.sources.fingerprint(), self.targets.fingerprint(), settings, self.seed)
        return hashlib.sha256(f"{parts}".encode()).hexdigest()

    def padding_share(self):
        """Return the share of padding among the tokens of an epoch's batches."""
        longest = [(len(b), self._sizes[b].max(axis=0).sum()) for b in self.batch_indices()]
        return 1 - self._sizes.sum() / sum(count * tokens for count, tokens in longest)


class ScheduledSampling(EpochBatches):
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

    def __init__(self, batches, rate, epochs):
        self.batches, self.rate, self.epochs = batches, rate, epochs
        self.lengths = batches.lengths

    def __len__(self):
        return len(self.batches)

    def plan(self, epoch):
        return self.batches.plan(epoch)

    def make(self, plan, epoch, number):
        inputs, labels = self.batches.make(plan, epoch, number)
        last = max(self.epochs * len(self) - 1, 1)
        rng = np.random.default_rng([self.batches.seed, epoch, number])
        share = self.rate * min((epoch * len(self) + number) / last, 1.0)
        sampled = (rng.random(labels.shape) < share).astype("int32")
        return inputs | {"feed_predictions": sampled}, labels

    def signature(self):
        """Return the `tf.TensorSpec`s of a batch."""
        inputs, labels = self.batches.signature()
        return inputs | {"feed_predictions": labels}, labels

    def fingerprint(self):
        """Return a SHA-256 of all that determines the batches, except the number of epochs."""
        return hashlib.sha256(f"{self.batches.fingerprint()} {self.rate}".encode()).hexdigest()
