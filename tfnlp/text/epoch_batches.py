"""Batches in epochs, each of which can be made alone, also by several processes."""

import abc
import collections
import concurrent.futures
import multiprocessing
import os
import pickle
import signal

from tfnlp.utils.errors import InputError
from tfnlp.utils.native_notices import without_notices

# Batches that a process makes at a time, as handing over costs as much as making one, and how
# many times as many each makes ahead of the training.
TOGETHER, AHEAD = 4, 2


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
    pool = concurrent.futures.ProcessPoolExecutor(
        batches.processes,
        # Forked processes would inherit locks that TensorFlow's threads hold.
        multiprocessing.get_context("spawn"),
        _start_worker,
        (pickle.dumps(batches), epoch),
    )
    waiting = collections.deque()
    try:
        for start in range(skip, len(batches), TOGETHER):
            waiting.append(pool.submit(_make, range(start, min(start + TOGETHER, len(batches)))))
            if len(waiting) == AHEAD * batches.processes:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    except concurrent.futures.process.BrokenProcessPool:
        raise InputError(
            "A process that makes batches was killed, perhaps as memory ran out; resume with "
            f"fewer than loader_processes={batches.processes}."
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


_worker = {}


def _start_worker(pickled, epoch):
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the training's memory is its own
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the training stops this process
    with without_notices():  # of TensorFlow, which the batches' modules import
        batches = pickle.loads(pickled)
    batches.processes = 0
    _worker.update(batches=batches, epoch=epoch, plan=batches.plan(epoch))


def _make(numbers):
    return [_worker["batches"].make(_worker["plan"], _worker["epoch"], n) for n in numbers]
