"""Folder of a training run, from which it resumes."""

import contextlib
import fnmatch
import hashlib
import json
import os
import pathlib
import time

import keras
import numpy as np
import safetensors
from absl import logging

from tfnlp.checkpoints.tensors import write_tensors
from tfnlp.training.run.fingerprints import add_array
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import (
    atomic_replace,
    check_writable,
    json_text,
    make_folder,
    read_json,
    write_json,
    write_text,
)
from tfnlp.utils.locks import held_alone

# Prefixes of tensor names in a state.
VARIABLE, SUM = "variable/", "sum/"
# Locked by the writing process; the file remains afterwards, and blocks no one.
LOCK = ".lock"
BAD_BATCH = "bad_batch.npz"
# The runs of MLflow and W&B that a folder's figures go to, by which a resumed run finds them.
TRACKED = "tracked.json"
# A learned tokenizer is saved, since the same texts may give other pieces another time.
TOKENIZER = "tokenizer"
# Files that a run writes, by folder, including those of tasks and recipes.
MODEL = ("*.json", "*.safetensors", "*.txt", "*.model")
RUN_FILES = {
    "checkpoints/*": (*MODEL, "README.md"),
    ".": ("flags.json", "metrics.jsonl", "figures.json", "README.md", "state.safetensors")
    + (
        "report.html",
        "curves*.png",
        "n_best.json",
        "*translations.tsv",
        "vectors.*",
        TRACKED,
        LOCK,
        BAD_BATCH,
    ),
    "best": (*MODEL, "README.md"),
    "*/[0-9]_*": MODEL,  # modules of an embedder
    "*/adapter": MODEL,
    TOKENIZER: MODEL,
    "generator": MODEL,
    "averaged": MODEL,
    "recent/*": MODEL,
    "events": ("events.out.tfevents.*",),
}
# End time and duration of an epoch, which differ between runs.
TIMES = ("time", "seconds")
# Subfolder of the first of two phases, with the files of a run.
INTERMEDIATE = "intermediate"


class RunFolder:
    """Flags, metrics, events, weights and model card of one run.

    | file | content |
    | --- | --- |
    | `flags.json` | the flags that decide the result |
    | `metrics.jsonl` | one object for each epoch, and one with a `step` for each line of steps |
    | `events/` | the same for TensorBoard |
    | `tracked.json` | the runs of MLflow and W&B that have the same |
    | `best/` | the Hugging Face folder of the best epoch; of a pretraining, of the last |
    | `checkpoints/` | Hugging Face folders of earlier steps, `step_2000/` and so on |
    | `state.safetensors` | the last state of the training, to resume from, with its SHA-256 |
    | `README.md` | the model card; `best/` has a copy |
    | `report.html` | the card as a page, with each epoch beside the curves |
    | `intermediate/` | the same of the first of two phases |
    | `generator/` | beside `best/`, another model that was trained with it |
    | `averaged/` | beside `best/`, the mean of the weights after the last epochs |
    | `recent/` | Hugging Face folders of the models that it is the mean of |
    | `tokenizer/` | the tokenizer, if the run learned one |
    | `bad_batch.npz` | the batch at which the loss was not finite |

    Args:
        path: the folder; created by `start`.
        flags: a dict of the flags that decide the result. Two paths of one file are equal. An
            existing path may replace one that no longer exists, with a warning; a saved state
            keeps the old name. `epochs` may increase once the run is finished: it then resumes
            from its state, with the learning rates of the new number of epochs.
        overwrite: whether `start` deletes the run in the folder.
        writes: whether anything is written; of several workers only one writes.
        defaults: values of flags that a run of an earlier version may lack, a dict.
        files: names of further files of this run in the folder.

    Raises:
        InputError: if the folder holds a run with other flags, or other files, or if another
            process writes to it.
    """

    def __init__(self, path, flags, overwrite=False, writes=True, defaults=None, files=()):
        self.writes = writes
        self.files = files
        self.path = pathlib.Path(path)
        self.best = self.path / "best"
        self.averaged = self.path / "averaged"
        self.checkpoints = self.path / "checkpoints"
        self.metrics_path = self.path / "metrics.jsonl"
        self.state_path = self.path / "state.safetensors"
        # As read back from JSON: lists for tuples, strings for keys.
        self.flags = json.loads(json_text(flags))
        self._defaults = json.loads(json_text(defaults or {}))
        self._flags_now = self.flags  # `flags` below may keep the old names of moved files
        self.overwritten = []  # the files to delete before the run starts
        self.tokenizer = None  # one that the run learned, which a resumed run must have again
        self._since = time.time()  # of the start, or of the last metrics
        if (self.path / LOCK).exists():
            with self.alone():
                pass  # before long work
        stored_path = self.path / "flags.json"
        self._stored = read_json(stored_path) if stored_path.exists() else None
        if self._stored is None:
            # Folders alone are what a kill while a run is overwritten may leave.
            files = [p for p in self.path.rglob("*") if not p.is_dir() and p.name != LOCK]
            if self.path.exists() and (not self.path.is_dir() or files):
                raise InputError(
                    f"{self.path} exists and is not a run's folder; give another folder."
                )
        elif overwrite:
            self.overwritten = self._run_files()
        else:
            self._adopt(self._stored)

    def _run_files(self):
        files = [path for path in self.path.rglob("*") if path.is_symlink() or not path.is_dir()]
        for path in files:
            name = path.relative_to(self.path)
            if not (_is_run_file(name) or str(name) in self.files):
                raise InputError(
                    f"{self.path} cannot be overwritten: {path} is no file of a run; move it "
                    "away, or give another folder."
                )
        # The flags are replaced last, so that after a kill the folder still counts as a run's.
        kept = (self.path / "flags.json", self.path / LOCK)
        return [path for path in files if path not in kept]

    def _adopt(self, stored):
        """Check that the stored flags are those of this run; keep old paths and earlier epochs."""
        stored, flags = self._defaults | stored, self._flags_now
        earlier = stored.pop("earlier_epochs", [])
        differing = {
            key for key in stored.keys() | flags if not _same(stored.get(key), flags.get(key))
        }
        moved = {key for key in differing if _moved(stored.get(key), flags.get(key))}
        differing = sorted(differing - moved)
        if differing == ["epochs"] and self._finished(stored.get("epochs"), flags.get("epochs")):
            earlier = [*earlier, stored["epochs"]]
            logging.info(
                "%s is finished after %d epochs and continues to %d, with the learning rates of a "
                "training of that length; `overwrite` trains all epochs anew.",
                self.path,
                stored["epochs"],
                flags["epochs"],
            )
        elif differing:
            key = differing[0]
            there, here = (_flag_text(values.get(key)) for values in (stored, flags))
            raise InputError(
                f"{self.path} holds another run: there `{key}` is {there}, here {here}; give "
                "another folder, the same settings to resume it, or `overwrite` to delete it."
            )
        for key in sorted(moved):
            logging.warning(
                "`%s` of the run in %s was %s, which is gone; %s takes its place.",
                key,
                self.path,
                stored[key],
                flags[key],
            )
        if self.state_path.exists():  # the state belongs to the old names
            self.flags = flags | {key: stored[key] for key in moved}
        if earlier:
            self.flags = self.flags | {"earlier_epochs": earlier}

    def _finished(self, stored, epochs):
        """Return whether the state ends `stored` epochs and `epochs` is not less."""
        if None in (stored, epochs) or epochs < stored or not self.state_path.exists():
            return False
        progress = self._read_state()[1]
        return progress["epoch"] == stored and not progress["stopped"]

    def first_epochs(self, epochs):
        """Return the number of epochs that the run began with; `epochs` if it never changed."""
        return self.flags.get("earlier_epochs", [epochs])[0]

    def intermediate(self):
        """Return the `RunFolder` of the first of two phases; this run's flags cover both."""
        return RunFolder(self.path / INTERMEDIATE, {}, bool(self.overwritten), self.writes)

    def start(self):
        """Write the flags, and delete an overwritten run; nothing is written or deleted before.

        So bad input leaves no run. Call it within `alone`.
        """
        self._since = time.time()
        overwritten, self.overwritten = self.overwritten, []
        if not self.writes:
            return
        for path in overwritten:
            path.unlink(missing_ok=True)
        if self.tokenizer is not None:
            self.tokenizer.save(self.path / TOKENIZER)
        write_json(self.path / "flags.json", self.flags)
        self._stored = self.flags

    @contextlib.contextmanager
    def alone(self):
        """Hold the folder's lock against other processes and other `RunFolder`s of this one.

        Raises:
            InputError: if another process or `RunFolder` holds it, or the folder is not writable.
        """
        if not self.writes:
            yield
            return
        check_writable(self.path / LOCK)
        make_folder(self.path)
        lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        advice = "wait until it ends, or give another folder"
        with held_alone(lock, f"{self.path} is in use by another run; {advice}."):
            yield

    def log(self, metrics):
        """Append a line of metrics with the time and the seconds since the last or `start`."""
        now = time.time()
        times = {"time": round(now, 1), "seconds": round(now - self._since, 1)}
        self._since = now
        self._write_metrics([*self._records(), {**times, **metrics}])

    def log_step(self, step, figures):
        """Append a line of figures of a step, counted from 1 through all epochs."""
        if not self.writes:
            return
        record = {"time": round(time.time(), 1), "step": step, **figures}
        try:
            with open(self.metrics_path, "a", encoding="utf-8") as file:
                file.write(json_text(record) + "\n")
        except OSError as e:
            raise InputError(
                f"{self.metrics_path} cannot be written ({e.strerror or e}); free space, and "
                "start the same command again."
            ) from e

    def truncate_metrics(self, epochs, steps):
        """Drop metrics that were logged after the given numbers of epochs and of steps."""
        kept = [m for m in self._records() if m.get("step", 0) <= steps]
        kept = [m for m in kept if "step" in m or m["epoch"] <= epochs]
        if self.metrics_path.exists() and _as_lines(kept) != self.metrics_path.read_text():
            self._write_metrics(kept)

    def _write_metrics(self, records):
        if self.writes:
            write_text(self.metrics_path, _as_lines(records))

    def _records(self):
        if not self.metrics_path.exists():
            return []
        records = []
        for number, line in enumerate(self.metrics_path.read_bytes().splitlines(True), 1):
            if not line.endswith(b"\n"):  # a kill may leave half a line at the end
                break
            try:
                records.append(json.loads(line))
            except ValueError as e:  # JSON's and Unicode's
                raise InputError(
                    f"{self.metrics_path}, line {number}: not valid JSON ({e}); delete the line."
                ) from None
        return records

    def metrics(self):
        """Return the metrics of the epochs so far, a list of dicts."""
        return [m for m in self._records() if "step" not in m]

    def steps(self):
        """Return the figures of the logged steps so far, a list of dicts."""
        return [m for m in self._records() if "step" in m]

    def save_state(self, variables, sums, progress, fingerprints):
        """Write a state of the training atomically as one file.

        Args:
            variables: a dict of the variables.
            sums: a dict of the metrics' sums within the epoch; empty at its end.
            progress, fingerprints: as in `RunRecorder`.
        """
        if not self.writes:
            return
        arrays = {f"{VARIABLE}{name}": np.asarray(v) for name, v in variables.items()}
        arrays |= {f"{SUM}{name}": np.asarray(v) for name, v in sums.items()}
        metadata = {"progress": json_text(progress), "fingerprints": json_text(fingerprints)}
        metadata["sha256"] = _checksum(arrays, metadata)
        write_tensors(self.state_path, arrays, metadata)

    def save_bad_batch(self, batch):
        """Write a batch as one file of named arrays."""
        if not self.writes:
            return
        inputs, *labels = batch
        named = inputs if isinstance(inputs, dict) else {"inputs": inputs}
        named = named | dict(zip(("labels", "sample_weight"), labels, strict=False))
        arrays = {".".join(path): a for path, a in keras.tree.flatten_with_path(named)}
        with atomic_replace(self.path / BAD_BATCH) as path, open(path, "wb") as file:
            np.savez(file, **arrays)

    def load_state(self, variables, fingerprints):
        """Restore the variables from the file of `save_state`.

        Args:
            variables, fingerprints: as in `save_state`.

        Returns:
            The progress and the metrics' sums; None for a fresh run.

        Raises:
            InputError: if the file is broken, is of another model, or was made from other inputs,
                or if another run used the folder meanwhile.
        """
        if self.overwritten or not self.state_path.exists():
            return None
        flags = self.path / "flags.json"
        stored = read_json(flags) if flags.exists() else self._stored
        if stored != self._stored:  # a run that began and ended since this one looked
            self._adopt(stored)
        arrays, progress, stored = self._read_state()
        self._check_fingerprints(stored, fingerprints)
        values = _with_prefix(VARIABLE, arrays)
        self._check_tensors(values, variables)
        for name, variable in variables.items():
            variable.assign(values[name])
        return progress, _with_prefix(SUM, arrays)

    def _read_state(self):
        """Return the tensors, the progress and the fingerprints of the state."""
        try:
            with safetensors.safe_open(str(self.state_path), framework="numpy") as file:
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                metadata = file.metadata()
            # States of before the checksum have none.
            if metadata.get("sha256") not in (None, _checksum(arrays, metadata)):
                raise OSError("its content differs from its SHA-256")
            return arrays, *(json.loads(metadata[key]) for key in ("progress", "fingerprints"))
        except (safetensors.SafetensorError, KeyError, TypeError, ValueError, OSError) as e:
            raise InputError(
                f"{self.state_path} is broken ({e}); delete it to start the run anew."
            ) from None

    def _check_fingerprints(self, stored, fingerprints):
        for name in [*fingerprints, *(stored.keys() - fingerprints)]:
            if stored.get(name) == fingerprints.get(name):
                continue
            path = self._flags_now.get(name)
            change = (
                f"on other content of {name}{f' ({path})' if path else ''} than is there now: "
            )
            change += "restore that to resume it"
            if (name in stored) != (name in fingerprints):
                change = f"with{'' if name in stored else 'out'} {name}; do so to go on"
            raise InputError(
                f"{self.path} was trained {change}, or start anew in another folder or by "
                "`overwrite`."
            )

    def _check_tensors(self, values, variables):
        for name in [*variables, *(values.keys() - variables)]:
            stored, expected = (_described(d.get(name)) for d in (values, variables))
            if stored != expected:
                raise InputError(
                    f"{self.state_path} is the state of another model: {name} is {stored} there "
                    f"and {expected} here; start anew in another folder or by `overwrite`."
                )


def _is_run_file(path):
    """Return whether a path within the folder is a run's file, complete or temporary."""
    if path.parts[0] == INTERMEDIATE and len(path.parts) > 1:
        path = path.relative_to(INTERMEDIATE)
    name = path.name
    if name.startswith(".") and name != LOCK:  # left by a kill in `atomic_replace`
        name = name[1:].rpartition(".")[0]
    folder = path.parent.as_posix()
    return any(
        fnmatch.fnmatch(folder, place) and fnmatch.fnmatch(name, pattern)
        for place, patterns in RUN_FILES.items()
        for pattern in patterns
    )


def _checksum(arrays, metadata):
    """Return the SHA-256 of named arrays, and of the metadata beside it."""
    digest = hashlib.sha256((metadata["progress"] + metadata["fingerprints"]).encode())
    for name in sorted(arrays):
        digest.update(name.encode())
        add_array(digest, arrays[name])
    return digest.hexdigest()


def _as_lines(records):
    return "".join(json_text(record) + "\n" for record in records)


def _same(stored, value):
    """Return whether two flags are equal, or paths of one file."""
    if stored == value or not (isinstance(stored, str) and isinstance(value, str)):
        return stored == value
    path = pathlib.Path(value)
    return path.exists() and pathlib.Path(stored).resolve() == path.resolve()


def _moved(stored, value):
    """Return whether the path of a flag no longer exists, and an existing one replaces it.

    For files, and for a teacher, fingerprints in the state show whether the content is the same.
    For the initial model, which was trained further, the state has all weights.
    """
    if not (isinstance(stored, str) and isinstance(value, str)):
        return False
    old = pathlib.Path(stored)
    return old.is_absolute() and not old.exists() and pathlib.Path(value).exists()


def _flag_text(value):
    """Return a flag's value as in error messages, a list in the flag's own syntax."""
    return repr(",".join(map(str, value)) if isinstance(value, list) else value)


def _described(tensor):
    if tensor is None:
        return "missing"
    return f"{keras.backend.standardize_dtype(tensor.dtype)} {tuple(tensor.shape)}"


def _with_prefix(prefix, arrays):
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
