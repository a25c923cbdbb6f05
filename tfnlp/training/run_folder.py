"""The folder that a run leaves behind, and from which it resumes."""

import json
import pathlib
import time

import numpy as np
import safetensors

from tfnlp.checkpoints.tensors import write_tensors
from tfnlp.errors import InputError
from tfnlp.files import read_json, write_json, write_text


class RunFolder:
    """Flags, metrics, events, weights and model card of one run.

    | file | what |
    | --- | --- |
    | `flags.json` | the flags that decide the result |
    | `metrics.jsonl` | one object for each epoch |
    | `events/` | the same for TensorBoard |
    | `best/` | the Hugging Face folder of the best epoch |
    | `state.safetensors` | the last state of the training, to resume from |
    | `README.md` | the model card |

    Args:
        path: the folder; created by `start`.
        flags: a dict of the flags that decide the result.

    Raises:
        InputError: if the folder holds a run with other flags, or other files.
    """

    def __init__(self, path, flags):
        self.path = pathlib.Path(path)
        self.best = self.path / "best"
        self.metrics_path = self.path / "metrics.jsonl"
        self.state_path = self.path / "state.safetensors"
        # As JSON gives them back: lists for tuples, strings for keys.
        self.flags = flags = json.loads(json.dumps(flags))
        stored_path = self.path / "flags.json"
        if stored_path.exists():
            stored = read_json(stored_path)
            differing = sorted(
                key for key in stored.keys() | flags if stored.get(key) != flags.get(key)
            )
            if differing:
                key = differing[0]
                raise InputError(
                    f"{self.path} holds another run: there --{key} is {stored.get(key)!r}, here "
                    f"{flags.get(key)!r}; give another --output_dir, or the same flags to "
                    "resume it."
                )
        elif self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise InputError(
                f"{self.path} exists and is not a run's folder; give another --output_dir."
            )

    def start(self):
        """Writes the flags; until then nothing is written, so that bad input leaves no run."""
        write_json(self.path / "flags.json", self.flags)

    def log(self, metrics):
        """Appends one line of metrics."""
        self._write_metrics([*self.metrics(), {"time": round(time.time(), 1), **metrics}])

    def truncate_metrics(self, epochs):
        """Drops what was logged after the state that the run resumes from."""
        kept = [m for m in self.metrics() if m["epoch"] <= epochs]
        if len(kept) < len(self.metrics()):
            self._write_metrics(kept)

    def _write_metrics(self, records):
        write_text(self.metrics_path, "".join(json.dumps(m) + "\n" for m in records))

    def metrics(self):
        """The metrics so far, a list of dicts."""
        if not self.metrics_path.exists():
            return []
        return [json.loads(line) for line in self.metrics_path.read_text().splitlines()]

    def save_state(self, variables, sums, progress):
        """Writes variables, metric sums and progress as one file, whole or not at all."""
        arrays = {f"variable_{i:05d}": np.asarray(v) for i, v in enumerate(variables)}
        arrays |= {f"sum_{i:05d}": np.asarray(v) for i, v in enumerate(sums)}
        write_tensors(self.state_path, arrays, {"progress": json.dumps(progress)})

    def load_state(self, variables):
        """Restores the variables that `save_state` wrote.

        Returns:
            The progress and the metrics' sums; None for a fresh run.

        Raises:
            InputError: if the file is broken or is of another model.
        """
        if not self.state_path.exists():
            return None
        try:
            with safetensors.safe_open(str(self.state_path), framework="numpy") as file:
                names = sorted(file.keys())
                arrays = [file.get_tensor(n) for n in names if n.startswith("variable_")]
                sums = [file.get_tensor(n) for n in names if n.startswith("sum_")]
                progress = json.loads(file.metadata()["progress"])
        except (safetensors.SafetensorError, KeyError, OSError) as e:
            raise InputError(
                f"{self.state_path} is broken ({e}); delete it to start the run anew."
            ) from None
        if [a.shape for a in arrays] != [tuple(v.shape) for v in variables]:
            raise InputError(
                f"{self.state_path} is the state of another model; give another --output_dir."
            )
        for variable, array in zip(variables, arrays, strict=True):
            variable.assign(array)
        return progress, sums

    def write_model_card(self, text):
        """Writes the model card, README.md."""
        write_text(self.path / "README.md", text)
