"""Execution of a sweep's runs: each step is a separate process and runs once."""

import os
import pathlib
import statistics
import subprocess
import sys
import time

from absl import logging

from recipes.shell.subprocesses import recipe_command, run_command
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json, write_json
from tfnlp.utils.locks import held_alone

# Metrics files in a step's folder: of a training, of predictions, of a benchmark.
FIGURES = ("figures.json", "summary.json", "benchmark.json")


def run_sweep(sweep, folder):
    """Run all unfinished runs; continue with the next one if a run fails.

    Args:
        sweep: a checked `recipes.sweeps.sweep_file.Sweep`.
        folder: the parent folder of the runs.

    Returns:
        The names of the runs that failed.

    Raises:
        InputError: if the folder holds runs with other flags, or another sweep is running in
            it; raised before any run starts.
        SystemExit: with status 130 if the sweep was stopped.
    """
    check_runs(sweep, folder)
    runs, folder = sweep.runs(folder), pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    refusal = (
        f"{folder} is in use by another sweep, or by a step that one left running; wait until it "
        "ends."
    )
    # The steps inherit the lock, so they still hold it if the sweep is killed.
    lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    with held_alone(lock, refusal):
        left = [run for run in runs if not _finished(run)]
        finished, failed = len(runs) - len(left), []
        if finished:
            logging.info("%d of %d runs are finished already.", finished, len(runs))
        for number, run in enumerate(left, 1):
            logging.info("[%d/%d] %s ...", finished + number, len(runs), run.name)
            start = time.monotonic()
            error = _run(run, lock)
            took = shown_time(time.monotonic() - start)
            if error:
                failed.append(run.name)
                logging.warning("%s failed after %s: %s", run.name, took, error)
            else:
                ahead = _time_left(runs, left[number:])
                logging.info("%s took %s%s.", run.name, took, ahead)
    return failed


def check_runs(sweep, folder):
    """Raise an InputError if a finished step in a folder had other flags than a checked sweep."""
    for run in sweep.runs(folder):
        for step in run.steps:
            record = _record(run, step)
            if "seconds" not in record:
                continue  # an unfinished recipe checks its flags when it resumes
            there, here = ({"recipe": x["recipe"]} | x["flags"] for x in (record, vars(step)))
            # The folder may have moved since, or may be given by another path.
            old = str(pathlib.Path(there["output_dir"]).parents[2])
            for name in sorted(there.keys() | here):
                before, now = there.get(name), here.get(name)
                if now not in (before, before and before.replace(old, str(folder))):
                    raise InputError(
                        f"{sweep.path}, variant {run.variant!r}: {run.folder} holds {step.name} "
                        f"with {name}={before!r}, here it is {now!r}; give the variant another "
                        "name, or delete that folder."
                    )


def read_figures(run):
    """Return the metrics of a finished run, {name: number}; a later step replaces equal names.

    An unfinished run has none: if only the teacher were trained, its metrics would pass for
    the student's.
    """
    figures = {}
    for step in run.steps if _finished(run) else ():
        place = run.folder / step.name
        for path in map(place.joinpath, FIGURES):
            figures |= _numbers(read_json(path)) if path.exists() else {}
        for path in place.glob("*.tflite"):
            figures["file_mb"] = path.stat().st_size / 1e6
    return figures


def shown_time(seconds):
    """Format seconds as `45 s`, `12 min` or `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _numbers(values, prefix=""):
    """Flatten the numbers of nested dicts into {dotted name: number}."""
    numbers = {}
    for name, value in values.items():
        if isinstance(value, dict):
            numbers |= _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            numbers[f"{prefix}{name}"] = value
    return numbers


def _run(run, lock):
    """Run the unfinished steps of a run; return an error message, or None."""
    for step in run.steps:
        if "seconds" in _record(run, step):
            continue
        record = {"recipe": step.recipe, "flags": step.flags}
        write_json(_record_path(run, step), record)
        flags = [f"--{name}={value}" for name, value in step.flags.items()]
        if step.recipe == "export_tflite":  # it does not resume, and a kill may leave its file
            flags.append("--overwrite=true")
        log, start = run.folder / f"{step.name}.log", time.monotonic()
        with open(log, "ab") as file:
            status = run_command(
                recipe_command(step.recipe, flags),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                pass_fds=[lock],
            )
        if status == 130:
            print("Stopped; the same command goes on from what is saved.", file=sys.stderr)
            sys.exit(130)
        if status:
            return f"{step.name}: {_last_line(log, status)} ({log})"
        write_json(_record_path(run, step), record | {"seconds": time.monotonic() - start})
    return None


def _last_line(log, status):
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    lines = [line.strip() for line in lines if line.strip()]
    if not lines or status < 0:
        return f"it ended by signal {-status}" if status < 0 else f"it ended with {status}"
    return lines[-1].removeprefix("Error: ")


def _record_path(run, step):
    return run.folder / f"{step.name}.json"


def _record(run, step):
    path = _record_path(run, step)
    return read_json(path) if path.exists() else {}


def _finished(run):
    return all("seconds" in _record(run, step) for step in run.steps)


def _time_left(runs, ahead):
    """Return the expected time of the remaining runs, estimated from the finished ones."""
    if not ahead:
        return ""
    seconds = {}
    for run in runs:
        if _finished(run):
            took = sum(_record(run, step)["seconds"] for step in run.steps)
            seconds.setdefault(run.variant, []).append(took)
    usual = statistics.fmean(s for durations in seconds.values() for s in durations)
    left = sum(statistics.fmean(seconds.get(run.variant, [usual])) for run in ahead)
    return f", about {shown_time(left)} left"
