"""Batches of encodings of similar length, to reduce padding."""

import dataclasses
import hashlib
import math
from typing import Any

import numpy as np

from tfnlp.text.batching.encoding import Encodings
from tfnlp.text.batching.epoch_batches import EpochBatches

# The number of batches sorted by length together: enough for little padding, few enough that every
# epoch mixes the examples anew.
POOL = 50
# The label of tokens without a label.
IGNORED = -100


@dataclasses.dataclass(eq=False, repr=False)
class LengthBatches(EpochBatches):
    """Padded batches of encodings and targets of similar length.

    The batches of an epoch depend on the seed and the epoch number alone, so a resumed run gets
    the same ones.

    Args:
        encodings: from a tokenizer; or a list of `tfnlp.text.Encoding`; or, for multiple choice, a
            list of equally long lists of them; or an object with `lengths`, `padded` and
            `fingerprint` like those of `Encodings`.
        batch_size: B.
        labels: a number or an array for each encoding; or a list for each, one label for each
            token, padded with `IGNORED`; or None.
        targets: an object whose `batch(indices, length)` returns a dict of further arrays (cached
            teacher outputs) and whose `signature()` returns their specs; or None.
        shuffle: whether each epoch has its own order; else batches are sorted by length.
        seed: the seed of the orders.
        pad_token_id: the id of padding.
        fixed_length: the length that all batches are padded to; None for the longest of each
            batch.
    """

    encodings: Any
    batch_size: int
    labels: Any = None
    targets: Any = None
    shuffle: bool = False
    seed: int = 0
    pad_token_id: int = 0
    fixed_length: int | None = None

    def __post_init__(self):
        rows, labels = self.encodings, self.labels
        self._rows = rows if hasattr(rows, "fingerprint") else Encodings.from_list(rows)
        self.choices = self._rows.choices is not None
        self.lengths = self._rows.lengths
        self.token_labels = None
        if labels is not None and isinstance(labels[0], list):
            self.token_labels, labels = labels, np.zeros(len(rows), "int32")
        if labels is not None:
            labels = np.asarray(labels)
            self.labels = labels.astype("float32" if labels.dtype.kind == "f" else "int32")

    def __len__(self):
        """Return the number of batches in an epoch."""
        return math.ceil(len(self.encodings) / self.batch_size)

    def batch_indices(self, epoch=0):
        """Return the indices of each batch of an epoch, a list of arrays."""
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
        """Return the inputs of some encodings, (B, L) int32 each, and any targets.

        For multiple choice, inputs are (B, choices, L).
        """
        inputs = self.to_fixed_length(self._rows.padded(indices, self.pad_token_id))
        length = inputs["token_ids"].shape[-1]
        labels = None if self.labels is None else self.labels[indices]
        if self.token_labels is not None:
            labels = np.full((len(indices), length), IGNORED, "int32")
            for row, i in enumerate(indices):
                labels[row, : self.lengths[i]] = self.token_labels[i]
        if self.targets is not None:
            labels = {} if labels is None else {"labels": labels}
            labels |= self.targets.batch(indices, length)
        return (inputs,) if labels is None else (inputs, labels)

    def to_fixed_length(self, inputs):
        """Return inputs (..., L) padded to `fixed_length`, or unchanged if that is None."""
        if self.fixed_length is None:
            return inputs
        missing = self.fixed_length - inputs["token_ids"].shape[-1]
        before, fill = inputs["token_ids"].ndim - 1, {"token_ids": self.pad_token_id}
        return {
            name: np.pad(
                x,
                [(0, 0)] * before + [(0, missing)] + [(0, 0)] * (x.ndim - before - 1),
                constant_values=fill.get(name, 0),
            )
            for name, x in inputs.items()
        }

    plan = batch_indices

    def make(self, plan, epoch, number):
        return self.batch(plan[number])

    def inputs_fingerprint(self):
        """Return a SHA-256 of the encodings."""
        return self._rows.fingerprint()

    def fingerprint(self):
        """Return a SHA-256 of all that determines the batches of every epoch, except `targets`."""
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

    def signature(self):
        """Return the `tf.TensorSpec`s of a batch, in the structure of `batch`."""
        import tensorflow as tf

        ids = tf.TensorSpec((None, None, None) if self.choices else (None, None), "int32")
        inputs = {key: ids for key in ("token_ids", "segment_ids", "padding_mask")}
        for name, (_, table) in getattr(self._rows, "further", {}).items():
            inputs[name] = ids if table is None else tf.TensorSpec((*ids.shape, None), "int32")
        labels = None
        if self.token_labels is not None:
            labels = tf.TensorSpec((None, None), "int32")
        elif self.labels is not None:
            labels = tf.TensorSpec((None, *self.labels.shape[1:]), self.labels.dtype.name)
        if self.targets is not None:
            labels = {} if labels is None else {"labels": labels}
            labels |= self.targets.signature()
        return (inputs,) if labels is None else (inputs, labels)

    def padding_share(self, epoch=0):
        """Return the share of padding among all tokens of an epoch's batches."""
        batches = self.batch_indices(epoch)
        padded = sum(len(b) * (self.fixed_length or int(self.lengths[b].max())) for b in batches)
        return 1 - self.lengths.sum() / padded
