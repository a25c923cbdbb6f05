"""Preset folders of keras-hub, read without keras-hub.

`backbone.save_to_preset` writes config.json, which names a class, and model.weights.h5, where each
variable stands under its layer's place; a classifier's own weights are in task.weights.h5.
"""

import contextlib
import dataclasses
import functools

import h5py

from tfnlp.checkpoints.family import read_fields
from tfnlp.checkpoints.keras_hub_map import PRESETS, TASK
from tfnlp.checkpoints.tensors import from_bfloat16
from tfnlp.text.keras_hub_tokenizer import read_pad_token_id
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json

PRESET_INDEX = "model.weights.json"
PRESET_WEIGHTS = "model.weights.h5"
TASK_WEIGHTS = "task.weights.h5"


def read_preset(folder):
    """Return the `Family` of a folder, its model config, and the names of unknown fields.

    Raises:
        InputError: if config.json has a class or a type of weights that tfnlp lacks.
    """
    path = folder / "config.json"
    fields = read_json(path)
    registered = fields.get("registered_name") or fields["class_name"]
    package, _, name = registered.rpartition(">")
    if package not in ("keras_hub", "keras_nlp") or name not in PRESETS:
        raise InputError(
            f"{path}: the class {registered} is none that tfnlp reads of keras-hub; "
            f"those are {', '.join(PRESETS)}."
        )
    fields = fields.get("config") or {}
    policy = fields.get("dtype")
    if isinstance(policy, dict) and policy.get("class_name") != "DTypePolicy":
        raise InputError(
            f"{path}: the weights are quantized ({policy.get('class_name')}); save the preset "
            "as it was before `quantize`."
        )
    config, unknown = read_fields(PRESETS[name], fields, path)
    # A backbone has no such field; the folder's tokenizer does.
    pad = read_pad_token_id(folder)
    if pad is not None:
        config = dataclasses.replace(config, pad_token_id=pad)
    return PRESETS[name], config, unknown


def read_task(folder):
    """Return the class in a preset's task.json, else that of its backbone."""
    path = folder / "task.json"
    return read_json(path if path.exists() else folder / "config.json").get("class_name")


class PresetReader:
    """Reader of a preset's tensors by name, with the interface of `TensorReader`.

    Args:
        folder: holds model.weights.h5, or model.weights.json and its shards.
        family, config: the results of `read_preset` for the folder.

    Raises:
        InputError: if a file is missing, cut short or no HDF5.
    """

    def __init__(self, folder, family, config):
        self.description = str(folder / PRESET_WEIGHTS)
        self._paths = {folder / name: "" for name in preset_weight_names(folder)}
        if read_task(folder) == family.architectures["classifier"]:
            self._paths[folder / TASK_WEIGHTS] = TASK
        self._places = {}  # file, name and shape of each tensor
        for path, prefix in self._paths.items():
            with _open(path) as file:
                file.visititems(functools.partial(self._add, path, prefix))
        self._computed = family.computed(config, self.read)

    def _add(self, path, prefix, name, entry):
        # An optimizer's variables may stand beside those of layers.
        if isinstance(entry, h5py.Dataset) and name.startswith("layers/"):
            self._places[prefix + name] = path, name, tuple(entry.shape)

    def size(self):
        """Return the size of all files together in bytes."""
        return sum(path.stat().st_size for path in self._paths)

    def names(self):
        """Return the names of all tensors."""
        return [*self._places, *self._computed]

    def shape(self, name):
        """Return a tensor's shape."""
        return self._computed[name].shape if name in self._computed else self._places[name][-1]

    def read(self, name):
        """Return a tensor as a NumPy array; bfloat16, which NumPy lacks, as float32."""
        if name not in self._places:
            return self._computed[name]
        path, place, _ = self._places[name]
        with _open(path) as file:
            value, dtype = file[place][()], file[place].attrs.get("dtype")
        return from_bfloat16(value) if dtype == "bfloat16" else value


def preset_weight_names(folder):
    """Return the names of a preset's weight files: the single file, else those in its index."""
    if (folder / PRESET_WEIGHTS).exists() or not (folder / PRESET_INDEX).exists():
        return [PRESET_WEIGHTS]
    names = set()
    for files in read_json(folder / PRESET_INDEX)["weight_map"].values():
        names.update(files if isinstance(files, list) else [files])
    return sorted(names)


def preset_files(folder):
    """Return the names of all weight files of a preset, including those of its task."""
    task = [TASK_WEIGHTS] if (read_task(folder) or "").endswith("TextClassifier") else []
    return preset_weight_names(folder) + task


@contextlib.contextmanager
def _open(path):
    """Open an HDF5 file for a short time, since an open file cannot be rewritten."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except OSError as e:
        raise InputError(f"{path} is not a whole HDF5 file ({e}); copy it again.") from None
