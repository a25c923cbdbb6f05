"""Weights of keras-hub preset folders, read without keras-hub."""

import pathlib

import h5py

from tfnlp.checkpoints.keras_hub_names import TASK
from tfnlp.checkpoints.keras_hub_preset import PRESET_INDEX, read_task
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json

PRESET_WEIGHTS = "model.weights.h5"
TASK_WEIGHTS = "task.weights.h5"


class PresetReader:
    """Reader of a preset's tensors by name, with the interface of `TensorReader`.

    Args:
        folder: holds model.weights.h5, or model.weights.json and its shards.
        preset, config: the results of `read_preset` for the folder.

    Raises:
        InputError: if a file is missing, cut short or no HDF5.
    """

    def __init__(self, folder, preset, config):
        folder = pathlib.Path(folder)
        self.description = str(folder / PRESET_WEIGHTS)
        self._paths = {"": [folder / name for name in preset_weight_names(folder)]}
        if read_task(folder) == preset.family.architectures["classifier"]:
            self._paths[TASK] = [folder / TASK_WEIGHTS]
        self._tensors = {}
        for start, paths in self._paths.items():
            for path in paths:
                self._add_all(start, path)
        self._computed = preset.computed(config, self.read)
        unused = f"layers/{preset.unused(config)}/"
        self._names = [*(n for n in self._tensors if not n.startswith(unused)), *self._computed]

    def _add_all(self, start, path):
        def add(name, entry):
            # An optimizer's variables may stand beside those of layers.
            if isinstance(entry, h5py.Dataset) and name.startswith("layers/"):
                self._tensors[start + name] = path, name, tuple(entry.shape)

        with _open(path) as file:
            file.visititems(add)

    def size(self):
        """Return the size of all files together in bytes."""
        return sum(path.stat().st_size for paths in self._paths.values() for path in paths)

    def names(self):
        """Return the names of all tensors."""
        return self._names

    def shape(self, name):
        """Return a tensor's shape."""
        return self._computed[name][0] if name in self._computed else self._tensors[name][2]

    def read(self, name):
        """Return a tensor as a NumPy array; bfloat16, which NumPy lacks, as float32."""
        if name in self._computed:
            return self._computed[name][1]()
        path, place, _ = self._tensors[name]
        with _open(path) as file:
            try:
                value, kind = file[place][()], file[place].attrs.get("dtype")
            except OSError as e:
                raise InputError(f"{path}: {place} cannot be read ({e}).") from None
        if kind == "bfloat16":
            # A bfloat16 is the upper half of a float32.
            value = (value.view("uint16").astype("uint32") << 16).view("float32")
        return value


def preset_weight_names(folder):
    """Return the names of a preset's weight files: the single file, else those in its index."""
    if (folder / PRESET_WEIGHTS).exists() or not (folder / PRESET_INDEX).exists():
        return [PRESET_WEIGHTS]
    weight_map = read_json(folder / PRESET_INDEX).get("weight_map") or {}
    names = set()
    for files in weight_map.values():
        names.update(files if isinstance(files, list) else [files])
    return sorted(names) or [PRESET_WEIGHTS]


def preset_files(folder):
    """Return the names of all weight files of a preset, including those of its task."""
    task = [TASK_WEIGHTS] if (read_task(folder) or "").endswith("TextClassifier") else []
    return preset_weight_names(folder) + task


def _open(path):
    """Open an HDF5 file for a short time, since an open file cannot be rewritten."""
    try:
        return h5py.File(path, "r")
    except FileNotFoundError:
        raise InputError(
            f"{path.parent} holds no {path.name}; save it with its weights, by `save_to_preset`."
        ) from None
    except OSError as e:
        raise InputError(f"{path} is not a whole HDF5 file ({e}); copy it again.") from None
