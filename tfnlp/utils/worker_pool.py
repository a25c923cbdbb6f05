"""Pools of worker processes, which end with the process that started them."""

import concurrent.futures
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import threading

from tfnlp.utils.errors import InputError
from tfnlp.utils.native_notices import without_notices


@contextlib.contextmanager
def worker_pool(processes, load, advice, wait=True):
    """Yield a function that gives an item to one of several processes and returns a future.

    Args:
        processes: their number.
        load: a picklable function without arguments, called once in each process; the function
            that it returns is called with each item.
        advice: what to do if a process is killed, for the error.
        wait: whether to wait at the end until the processes are gone, as where they write.

    Raises:
        InputError: if a process is killed; the futures raise what `load` and its function raise.
    """
    # Forked processes would inherit locks that the caller's threads hold.
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(
        processes, context, _start_worker, (pickle.dumps(load),)
    )
    try:
        yield lambda item: pool.submit(_work, item)
    except concurrent.futures.process.BrokenProcessPool as e:
        raise InputError(
            f"A worker process was killed, perhaps as memory ran out; {advice}."
        ) from e
    finally:
        pool.shutdown(wait, cancel_futures=True)


_worker = {}


def _start_worker(pickled_load):
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # each process has one core
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the first process has the device's memory
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process stops this one
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker["load"] = pickled_load


def _work(item):
    if "make" not in _worker:  # not at the start, where an error would only break the pool
        with without_notices():  # of TensorFlow, which what is pickled may import
            _worker["make"] = pickle.loads(_worker["load"])()
        del _worker["load"]
    return _worker["make"](item)


def _end_with_parent():
    """Exit when the parent process ends, as a killed parent cannot stop its children."""
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
