"""Pairs of source and target in batches of so many tokens."""

import hashlib

import numpy as np

from tfnlp.text.batches import IGNORED, LengthBatches


class PairBatches:
    """Pairs of like length in padded batches of at most so many tokens (Vaswani et al., 5.1).

    A batch of B pairs, padded to S source and T target tokens, has B * (S + T) of them. Pairs are
    sorted by the longer side, pairs of equal sizes in a new order in each epoch, and cut; so each
    epoch has batches of the same sizes, in an order of its own. Both orders depend on the
    seed and the epoch's number alone.

    Args:
        sources: `Encodings`, each with the end token at its end.
        targets: `Encodings` of as many, likewise.
        max_tokens: the most tokens of a batch, padding counted; no pair is longer.
        pad_token_id: the id that fills the ends.
        start_token_id: what the decoder reads first.
        shuffle: whether each epoch has its own order; else sorted by length.
        seed: of the orders.

    Raises:
        ValueError: for unequal numbers, none, or a pair that is longer than a batch.
    """

    dataset = LengthBatches.dataset

    def __init__(
        self, sources, targets, max_tokens, pad_token_id, start_token_id, shuffle=False, seed=0
    ):
        if len(sources) != len(targets) or not len(sources):
            raise ValueError(f"There are {len(sources)} sources and {len(targets)} targets.")
        self.sources, self.targets = sources, targets
        self._sizes = np.stack([sources.lengths, targets.lengths], axis=1)  # (pairs, 2)
        if self._sizes.sum(1).max() > max_tokens:
            raise ValueError(
                f"max_tokens={max_tokens} is less than a pair of {self._sizes.sum(1).max()}."
            )
        self.max_tokens = max_tokens
        self.pad_token_id, self.start_token_id = pad_token_id, start_token_id
        self.shuffle, self.seed = shuffle, seed
        self._ends = self._cut(self._sorted(np.arange(len(sources))))

    @property
    def lengths(self):
        """The tokens of each pair's longer side, which a model must have positions for."""
        return self._sizes.max(axis=1)

    def __len__(self):
        """The number of batches in an epoch."""
        return len(self._ends)

    def _sorted(self, ranks):
        """The pairs by their sizes, of equal sizes in the order of their ranks."""
        return np.lexsort((ranks, *self._sizes.T, self.lengths))

    def _cut(self, order):
        """Where each batch of the sorted pairs ends: their sizes alone decide it."""
        ends, begin, longest = [], 0, np.zeros(2, "int64")
        for i, size in enumerate(self._sizes[order]):
            longest = np.maximum(longest, size)
            if (i - begin + 1) * longest.sum() > self.max_tokens:
                ends.append(i)
                begin, longest = i, size
        return [*ends, len(order)]

    def order(self, epoch=0):
        """The indices of every batch of an epoch, a list of arrays."""
        rng = np.random.default_rng([self.seed, epoch])
        count = len(self._sizes)
        ranks = rng.permutation(count) if self.shuffle else np.arange(count)
        batches = np.split(self._sorted(ranks), self._ends[:-1])
        if self.shuffle:
            rng.shuffle(batches)
        return batches

    def batch(self, indices):
        """The inputs and labels of some pairs.

        Returns:
            A dict of `encoder_token_ids` and `encoder_padding_mask`, (B, S) int32, and
            `decoder_token_ids`, (B, T) int32, which are the start token and the target without
            its last; and the labels (B, T) int32, the target, `IGNORED` where it is padded.
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

    def epoch(self, epoch=0, skip=0):
        """Yields the batches of an epoch, without the first `skip`."""
        for indices in self.order(epoch)[skip:]:
            yield self.batch(indices)

    def signature(self):
        """The `tf.TensorSpec`s of a batch, as `batch` gives it."""
        import tensorflow as tf

        ids = tf.TensorSpec((None, None), "int32")
        names = ("encoder_token_ids", "encoder_padding_mask", "decoder_token_ids")
        return dict.fromkeys(names, ids), ids

    def fingerprint(self):
        """A SHA-256 of all that decides the batches of every epoch."""
        settings = [self.max_tokens, self.pad_token_id, self.start_token_id, self.shuffle]
        parts = (self.sources.fingerprint(), self.targets.fingerprint(), settings, self.seed)
        return hashlib.sha256(f"{parts}".encode()).hexdigest()

    def padding_share(self):
        """The share of padding among the tokens of an epoch's batches."""
        longest = [(len(b), self._sizes[b].max(axis=0).sum()) for b in self.order()]
        return 1 - self._sizes.sum() / sum(count * tokens for count, tokens in longest)
