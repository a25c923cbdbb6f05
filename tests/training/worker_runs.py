"""One of several workers that train a small model together; writes what it ended with.

    TF_CONFIG=... python tests/training/worker_runs.py FOLDER ROUND

A program of its own for `test_workers.py` and `benchmarks/workers.py`: a worker is a process. In
round 1 a training runs to its end, and the last worker is killed in mid-run of another; in round
2 all go on with that one, one of them is asked to stop a third, and they are started unlike.
"""

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import keras
import numpy as np

from tests.kills import metrics_of
from tests.training.strategy_runs import TASKS, V, text_model
from tfnlp.text import LengthBatches
from tfnlp.text.tokenizers.tokenizer import Encoding
from tfnlp.training import FineTuner, RunFolder, TrainingConfig, fit, make_strategy, optimizer_of
from tfnlp.training.run.inference import evaluator
from tfnlp.training.step.worker_cluster import read_cluster
from tfnlp.utils.errors import InputError

ROOT = pathlib.Path(__file__).parents[2]
# 50 texts in seven batches of 7 and one of 1: two workers have 3 + 4 and 0 + 1,
# four 1 + 2 + 2 + 2 and 0 + 0 + 0 + 1.
CONFIG = TrainingConfig(
    epochs=3,
    batch_size=7,
    learning_rate=1e-2,
    weight_decay=0.1,
    clip_norm=0.05,
    checkpoint_steps=5,
)


def batches(seed, texts=50):
    rng = np.random.default_rng(seed)
    rows = [rng.integers(1, V, n).tolist() for n in rng.integers(1, 8, texts)]
    encodings = [Encoding(row, [0] * len(row), truncated=False) for row in rows]
    labels = [e.token_ids[0] % 2 for e in encodings]
    return LengthBatches(encodings, CONFIG.batch_size, labels, shuffle=True, seed=seed)


def train(strategy, folder, writes, config=CONFIG, kill_at=None, number=signal.SIGKILL):
    """Trains a run in a folder; sends itself a signal at a step of all if asked for.

    Returns:
        The weights, and the metrics of all epochs without their times.
    """
    data, dev = batches(config.seed), batches(99, 5)
    keras.utils.set_random_seed(config.seed)
    with strategy.scope():
        task = TASKS["classification"]
        model = text_model(task)
        optimizer = optimizer_of(config, model, len(data))
        # Adam divides a gradient by its size: of one that is 0 but for rounding it makes a step.
        optimizer.epsilon = 1e-3
        trained = FineTuner(model, task)
        trained.compile(optimizer, jit_compile=False)
    if kill_at is not None:
        kill_at_step(trained, kill_at, number)
    run = RunFolder(folder, {}, writes=writes)
    run_on_dev = evaluator(model, task, dev.signature())

    def evaluate():
        outputs, loss = run_on_dev(dev)
        accuracy = np.mean(np.argmax(outputs["logits"], 1) == dev.labels)
        return {"val_loss": loss, "val_accuracy": float(accuracy)}

    options = {"monitor": "val_accuracy", "evaluate": evaluate}
    fit(trained, data, config, run, lambda best: best.mkdir(exist_ok=True), **options)
    return [w.numpy() for w in model.weights], metrics_of(run)


def kill_at_step(model, step, number):
    make = model.make_train_function

    def make_and_kill(force=False):
        make(force)
        function, done = model.train_function, []

        def killing(iterator):
            done.append(1)
            if len(done) == step:
                os.kill(os.getpid(), number)
            return function(iterator)

        model.train_function = killing

    model.make_train_function = make_and_kill


def start(folder, number, workers=2):
    """Runs a round by so many processes; their exit states and what they wrote to stderr."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(workers)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    processes = []
    for index in range(workers):
        task = {"type": "worker", "index": index}
        config = json.dumps({"cluster": {"worker": addresses}, "task": task})
        processes.append(
            subprocess.Popen(
                [sys.executable, __file__, folder, str(number)],
                env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CONFIG": config},
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    # Of all at once: a full pipe would hold a worker, and so the others.
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        try:
            errors = list(pool.map(lambda p: p.communicate(timeout=300)[1], processes))
        finally:
            for process in processes:
                process.kill()
    return [process.returncode for process in processes], errors


def ends(folder):
    """What workers ended with, {run and worker: a dict}."""
    found = {}
    for path in pathlib.Path(folder).glob("*.json"):
        arrays = np.load(path.with_suffix(".npz"))
        found[path.stem] = json.loads(path.read_text()) | {"weights": list(arrays.values())}
    return found


def main():
    folder, number = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    cluster = read_cluster()
    last = cluster.index == len(cluster.workers) - 1
    strategy = make_strategy("multi_worker")
    writes = cluster.index == 0

    def ended(run, arrays, logs, **more):
        np.savez(folder / f"{run}{cluster.index}.npz", *arrays)
        text = json.dumps({"logs": logs, "replicas": strategy.num_replicas_in_sync, **more})
        (folder / f"{run}{cluster.index}.json").write_text(text)

    if number == 1:
        ended("whole", *train(strategy, folder / "whole", writes))
        # What is left is the state after 5 steps of the second epoch.
        try:
            train(strategy, folder / "broken", writes, kill_at=15 if last else None)
        except InputError as e:
            ended("left", [], [], error=str(e))
        return
    ended("broken", *train(strategy, folder / "broken", writes))
    stop = 5 if last else None
    try:
        train(strategy, folder / "stopped", writes, kill_at=stop, number=signal.SIGTERM)
    except KeyboardInterrupt:
        ended("stopped", *train(strategy, folder / "stopped", writes))
    unlike = dataclasses.replace(CONFIG, weight_decay=0.2 if last else 0.1)
    try:
        train(strategy, folder / "unlike", writes, unlike)
    except InputError as e:
        ended("unlike", [], [], error=str(e))


if __name__ == "__main__":
    main()
