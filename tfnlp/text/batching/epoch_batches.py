"""Batches in epochs, each of which can be made alone, also by several processes."""

import abc
import collections
import functools

from tfnlp.utils.errors import InputError
from tfnlp.utils.worker_pool import worker_pool

# Batches that a process makes at a time, as handing one over costs as much as making it.
TOGETHER = 4
# Such groups that are made ahead of the training for each process.
AHEAD = 2


class EpochBatches(abc.ABC):
    """Base class of batches in epochs.

    A batch depends on the epoch and its number alone, so a resumed run gets the same ones, and
    any number of processes makes them.
    """

    processes = 0  # that make batches; 0 for this one

    @abc.abstractmethod
    def __len__(self):
        """Return the number of batches in an epoch."""

    @abc.abstractmethod
    def plan(self, epoch):
        """Return all that the batches of an epoch share, such as its order."""

    @abc.abstractmethod
    def make(self, plan, epoch, number):
        """Return a batch of an epoch by its number, from `plan(epoch)`."""

    @abc.abstractmethod
    def signature(self):
        """Return the `tf.TensorSpec`s of a batch."""

    def epoch(self, epoch=0, skip=0):
        """Yield the batches of an epoch, without the first `skip`."""
        if self.processes:
            yield from _made_by_processes(self, epoch, skip)
            return
        plan = self.plan(epoch)
        for number in range(skip, len(self)):
            yield self.make(plan, epoch, number)

    def dataset(self, epoch=lambda: 0, skip=0):
        """Return a `tf.data.Dataset` of one epoch's batches.

        Args:
            epoch: a function that returns the epoch; called at the start of each pass.
            skip: the number of batches to skip at the start.

        Raises:
            ValueError: if there are fewer batches than `skip`.
        """
        if not 0 <= skip <= len(self):  # TensorFlow reads a negative count as infinite
            raise ValueError(f"skip={skip} must lie between 0 and the {len(self)} batches.")
        import tensorflow as tf  # so that LiteRT-only installations can use this module

        data = tf.data.Dataset.from_generator(
            lambda: self._with_kept_error(epoch(), skip), output_signature=self.signature()
        )
        options = tf.data.Options()
        # There is nothing to tune, and the end of an epoch can wait for the autotuning
        # thread: as long as the epoch took so far, up to a minute.
        options.autotune.enabled = False
        data = data.apply(tf.data.experimental.assert_cardinality(len(self) - skip))
        return data.prefetch(4).with_options(options)

    def _with_kept_error(self, epoch, skip):
        """Yield an epoch's batches and keep any InputError as `error`; tf.data replaces it."""
        try:
            yield from self.epoch(epoch, skip)
        except InputError as e:
            self.error = e
            raise


def _made_by_processes(batches, epoch, skip):
    """Yield the batches of an epoch, in order, made by `batches.processes` processes."""
    processes, waiting = batches.processes, collections.deque()
    advice = f"resume with fewer than loader_processes={processes}"
    load = functools.partial(_maker, batches, epoch)
    # The training does not wait for processes that end, which takes seconds.
    with worker_pool(processes, load, advice, wait=False) as give:
        for start in range(skip, len(batches), TOGETHER):
            waiting.append(give(range(start, min(start + TOGETHER, len(batches)))))
            if len(waiting) == AHEAD * processes:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def _maker(batches, epoch):
    """Return a function that makes the batches of an epoch by their numbers, a list."""
    plan = batches.plan(epoch)
    return lambda numbers: [batches.make(plan, epoch, number) for number in numbers]
