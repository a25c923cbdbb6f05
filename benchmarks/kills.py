"""Kills a recipe's run repeatedly (`kill -9`), and compares its result with an undisturbed run.

    python -m benchmarks.kills pretrain --corpus=reviews.txt --documents=lines --num_layers=2 \\
        --hidden_dim=64 --num_heads=2 --steps_per_epoch=100 --epochs=4 --checkpoint_steps=7

Two runs have the same flags. One is undisturbed; the other is killed at --kills random moments of
the training, some of them during a step or while a checkpoint is saved. The weights in all
folders, the state and the metrics must be equal, bit for bit. The processes are forked from this
one, which has imported TensorFlow but not used it.
"""

import argparse
import importlib
import json
import os
import pathlib
import random
import runpy
import signal
import sys
import tempfile
import threading
import traceback

import safetensors.numpy

from recipes.shell import entry_point

ROOT = pathlib.Path(__file__).parents[1]


def run_recipe(recipe, flags, log, prepare=lambda: None):
    """Run a recipe in a forked process.

    Args:
        recipe: name of the recipe.
        flags: a list of strings.
        log: path of the file that the output is appended to.
        prepare: a function called in the process before the recipe.

    Returns:
        The exit status, -9 if the process was killed.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(file, stream)
        prepare()
        sys.argv = [str(ROOT / "recipes" / f"{recipe}.py"), *flags]
        runpy.run_path(sys.argv[0], run_name="__main__")
        status = 0
    except SystemExit as e:
        status = e.code or 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def kill_after(step, delay):
    """Make this process kill itself `delay` seconds after a step of the whole training.

    If a resumed training is already past that step, the kill follows its first step.
    """
    from tfnlp.training.run.resumable_fit import RunRecorder

    original, killing = RunRecorder.on_train_batch_end, []

    def on_train_batch_end(recorder, batch, logs=None):
        progress = recorder.progress
        done = progress.epoch * len(recorder.batches) + progress.step + 1
        if done >= step and not killing:
            killing.append(threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)))
            killing[0].start()
        original(recorder, batch, logs)

    RunRecorder.on_train_batch_end = on_train_batch_end


def killed_run(recipe, flags, folder, moments, delay, prepare=lambda: None):
    """Run a recipe, kill it at given steps, and then let it finish.

    Args:
        recipe, flags: as in `run_recipe`.
        folder: the run's folder; its output is in a log beside it.
        moments: steps of the whole training, in order.
        delay: the most seconds between such a step and the kill.
        prepare: a function called in each process before the recipe.

    Returns:
        The number of kills that came before the run had ended.

    Raises:
        RuntimeError: if the recipe fails.
    """
    flags, log = [*flags, f"--output_dir={folder}"], pathlib.Path(f"{folder}.log")
    draw, kills = random.Random(len(moments)), 0
    for step in moments:
        seconds = draw.uniform(0, delay)

        def prepare_kill(step=step, seconds=seconds):
            prepare()
            kill_after(step, seconds)

        status = run_recipe(recipe, flags, log, prepare_kill)
        if status not in (0, -signal.SIGKILL):
            raise RuntimeError(f"it ended with {status}:\n{log.read_text()}")
        kills += status != 0
    status = run_recipe(recipe, flags, log, prepare)
    if status:
        raise RuntimeError(f"it ended with {status}:\n{log.read_text()}")
    return kills


def contents(folder):
    """Return a run's results: {name: tensor} of its files, and its metrics without times."""
    folder = pathlib.Path(folder)
    found = {
        f"{path.relative_to(folder)}: {name}": tensor
        for path in sorted(folder.rglob("*.safetensors"))
        for name, tensor in safetensors.numpy.load_file(path).items()
    }
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    metrics = [json.loads(line) for line in lines]
    return found, [{k: v for k, v in m.items() if k not in ("time", "seconds")} for m in metrics]


def differences(one, other):
    """Return the names of the tensors, and of the metrics, that differ between two folders."""
    (a, metrics), (b, other_metrics) = map(contents, (one, other))
    names = [
        n for n in a.keys() | b if n not in a or n not in b or a[n].tobytes() != b[n].tobytes()
    ]
    return names + (["metrics.jsonl"] if metrics != other_metrics else [])


def import_libraries():
    """Import the libraries of the recipes, without starting TensorFlow's threads."""
    entry_point.load_tensorflow()
    for name in ("tfnlp.checkpoints", "tfnlp.objectives", "tfnlp.training", "distill.learning"):
        package = importlib.import_module(name)
        for attribute in package.__all__:  # packages load their modules when asked
            getattr(package, attribute)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("recipe", help="Such as pretrain.")
    parser.add_argument("--kills", type=int, default=20, help="How often; 20 if not given.")
    parser.add_argument("--kill_seed", type=int, default=0, help="Of the moments.")
    arguments, flags = parser.parse_known_args()
    import_libraries()
    with tempfile.TemporaryDirectory() as place:
        killed_run(arguments.recipe, flags, f"{place}/whole", [], 0)
        log = pathlib.Path(f"{place}/whole.log").read_text()
        steps = steps_of(f"{place}/whole", log)
        draw = random.Random(arguments.kill_seed)
        moments = sorted(draw.sample(range(1, steps), arguments.kills))
        print(f"{steps} steps, to be killed after {moments}", flush=True)
        delay = 3 * step_seconds(f"{place}/whole", steps)
        kills = killed_run(arguments.recipe, flags, f"{place}/killed", moments, delay)
        differing = differences(f"{place}/whole", f"{place}/killed")
        tensors = len(contents(f"{place}/whole")[0])
        print(
            f"{kills} kills; {tensors} tensors, {len(differing)} of them not equal {differing[:5]}"
        )
    sys.exit(bool(differing))


def steps_of(folder, log):
    """Return the number of steps of a finished training, from the optimizer's count.

    Raises:
        RuntimeError: if the state has no such count.
    """
    tensors = safetensors.numpy.load_file(f"{folder}/state.safetensors")
    found = [v for name, v in tensors.items() if name.endswith("/iteration")]
    if not found:
        raise RuntimeError(f"the state names no iterations:\n{log}")
    return int(max(found))  # an optimizer that wraps another one counts 0


def step_seconds(folder, steps):
    """Return the seconds of a step after the first epoch, from the times in the metrics.

    Raises:
        RuntimeError: if there are fewer than two epochs.
    """
    lines = (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()
    times = [json.loads(line)["time"] for line in lines]
    if len(times) < 2:
        raise RuntimeError("it takes 2 epochs to tell how long a step takes; give them")
    return (times[-1] - times[0]) / (len(times) - 1) * len(times) / steps


if __name__ == "__main__":
    main()
