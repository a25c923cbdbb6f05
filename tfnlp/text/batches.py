"""Batches of encodings of like length, so that little is padding."""

import hashlib
import math

import numpy as np

from tfnlp.errors import InputError
from tfnlp.text.encoding import Encodings

# Batches that are sorted by length together: enough for little padding, few enough that
# every epoch mixes the examples anew.
POOL = 50
# The label of tokens that have none.
IGNORED = -100


class LengthBatches:
    """Encodings and targets in padded batches of like length.

    An epoch's batches depend on the seed and the epoch's number alone, so that a killed run
    finds them again.

    Args:
        encodings: from a tokenizer; or a list of `tfnlp.text.Encoding`, or of lists of as many
            each, to choose from; or what has `lengths`, `padded` and `fingerprint` as `Encodings`
            have them.
        batch_size: B.
        labels: for each encoding a number or as many numbers each; or one for each of its
            tokens, padded with `IGNORED`; or None.
        targets: an object whose `batch(indices, length)` gives a dict of further arrays
            (cached teacher outputs) and whose `signature()` gives their specs; or None.
        shuffle: whether each epoch has its own order; else sorted by length.
        seed: of the orders.
        pad_token_id: the id that fills the ends.
        fixed_length: the length that all batches are padded to; None for that of their longest.
    """

    def __init__(
        self,
        encodings,
        batch_size,
        labels=None,
        targets=None,
        shuffle=False,
        seed=0,
        pad_token_id=0,
        fixed_length=None,
    ):
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size} must be at least 1.")
        self.encodings = encodings
        self._rows = encodings if hasattr(encodings, "fingerprint") else Encodings.of(encodings)
        self.choices = self._rows.choices is not None
        self.lengths = self._rows.lengths
        self.token_labels = None
        if labels is not None and isinstance(labels[0], list):
            self.token_labels, labels = labels, np.zeros(len(encodings), "int32")
        self.labels = None if labels is None else np.asarray(labels)
        if self.labels is not None:
            floating = self.labels.dtype.kind == "f"
            self.labels = self.labels.astype("float32" if floating else "int32")
        self.targets = targets
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.pad_token_id = pad_token_id
        self.fixed_length = fixed_length

    def __len__(self):
        """The number of batches in an epoch."""
        return math.ceil(len(self.encodings) / self.batch_size)

    def order(self, epoch=0):
        """The indices of every batch of an epoch, a list of arrays."""
        if not self.shuffle:
            return self._split(np.argsort(self.lengths, kind="stable"))
        rng = np.random.default_rng([self.seed, epoch])
        shuffled = rng.permutation(len(self.encodings))
        size = POOL * self.batch_size
        batches = []
        for start in range(0, len(shuffled), size):
            pool = shuffled[start : start + size]
            batches += self._split(pool[np.argsort(self.lengths[pool], kind="stable")])
        rng.shuffle(batches)
        return batches

    def _split(self, indices):
        return [indices[i : i + self.batch_size] for i in range(0, len(indices), self.batch_size)]

    def batch(self, indices):
        """The inputs of some encodings, (B, L) int32 each; with their targets if any.

        To choose from, inputs are (B, choices, L).
        """
        inputs = self.to_fixed_length(self._rows.padded(indices, self.pad_token_id))
        length = inputs["token_ids"].shape[-1]
        if self.labels is None:
            targets = self.targets
            return (inputs,) if targets is None else (inputs, targets.batch(indices, length))
        labels = self.labels[indices]
        if self.token_labels is not None:
            labels = np.full((len(indices), length), IGNORED, "int32")
            for row, i in enumerate(indices):
                labels[row, : self.lengths[i]] = self.token_labels[i]
        if self.targets is None:
            return inputs, labels
        return inputs, {"labels": labels, **self.targets.batch(indices, length)}

    def to_fixed_length(self, inputs):
        """Inputs (..., L) padded to the `fixed_length`; as they are where there is none."""
        if self.fixed_length is None:
            return inputs
        return _padded_to(self.fixed_length, inputs, self.pad_token_id)

    def epoch(self, epoch=0, skip=0):
        """Yields the batches of an epoch, without the first `skip`."""
        for indices in self.order(epoch)[skip:]:
            yield self.batch(indices)

    def inputs_fingerprint(self):
        """A SHA-256 of the encodings."""
        return self._rows.fingerprint()

    def fingerprint(self):
        """A SHA-256 of all that decides the batches of every epoch, save `targets`."""
        settings = [self.batch_size, self.shuffle, self.seed, self.pad_token_id]
        if self.fixed_length is not None:
            settings.append(self.fixed_length)
        digest = hashlib.sha256(f"{self.inputs_fingerprint()} {settings}".encode())
        if self.labels is not None:
            digest.update(f"{self.labels.dtype}{self.labels.shape}".encode())
            digest.update(np.ascontiguousarray(self.labels))
        for labels in self.token_labels or ():
            digest.update(np.asarray(labels, "<i4"))
        return digest.hexdigest()

    def dataset(self, epoch=lambda: 0, skip=0):
        """A `tf.data.Dataset` of one epoch's batches.

        Args:
            epoch: called at the start of each pass; gives the epoch.
            skip: the number of batches to leave out at the start.

        Raises:
            ValueError: if there are fewer batches than `skip`.
        """
        if not 0 <= skip <= len(self):  # a negative count would say "infinite" to TensorFlow
            raise ValueError(f"skip={skip} must lie between 0 and the {len(self)} batches.")
        import tensorflow as tf  # here, so that texts are read where only LiteRT is installed

        data = tf.data.Dataset.from_generator(
            lambda: _with_kept_error(self, epoch(), skip), output_signature=self.signature()
        )
        options = tf.data.Options()
        # There is nothing to tune, and an epoch's end at times waits for the thread that would:
        # as long as the epoch took by then, up to a minute.
        options.autotune.enabled = False
        data = data.apply(tf.data.experimental.assert_cardinality(len(self) - skip))
        return data.prefetch(4).with_options(options)

    def signature(self):
        """The `tf.TensorSpec`s of a batch, as `batch` gives it."""
        import tensorflow as tf

        ids = tf.TensorSpec((None, None, None) if self.choices else (None, None), "int32")
        signature = ({key: ids for key in ("token_ids", "segment_ids", "padding_mask")},)
        if self.token_labels is not None:
            labels = tf.TensorSpec((None, None), "int32")
        elif self.labels is not None:
            labels = tf.TensorSpec((None, *self.labels.shape[1:]), self.labels.dtype.name)
        if self.targets is not None:
            labels = {} if self.labels is None else {"labels": labels}
            signature += ({**labels, **self.targets.signature()},)
        elif self.labels is not None:
            signature += (labels,)
        return signature

    def padding_share(self, epoch=0):
        """The share of padding among the tokens of an epoch's batches."""
        fixed = self.fixed_length
        padded = sum(len(b) * (fixed or int(self.lengths[b].max())) for b in self.order(epoch))
        return 1 - self.lengths.sum() / padded


def _with_kept_error(batches, epoch, skip):
    """An epoch of batches, whose InputError they keep: tf.data makes another error of it."""
    try:
        yield from batches.epoch(epoch, skip)
    except InputError as e:
        batches.error = e
        raise


def _padded_to(length, inputs, pad_token_id):
    """Inputs (..., L) of that length, which is no less than theirs."""
    missing = length - inputs["token_ids"].shape[-1]
    axes = [(0, 0)] * (inputs["token_ids"].ndim - 1) + [(0, missing)]
    fill = {"token_ids": pad_token_id}
    return {key: np.pad(v, axes, constant_values=fill.get(key, 0)) for key, v in inputs.items()}
