"""Reading and writing of safetensors files, single or sharded."""

import json
import math
import pathlib

import keras
import numpy as np
import safetensors
import safetensors.numpy

from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace, read_json
from tfnlp.utils.hub import PICKLES, refused_pickle

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"

# NumPy types by safetensors' names.
DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "U8": "u1",
    "BOOL": "?",
}


def write_tensors(path, tensors, metadata=None):
    """Write a dict of NumPy arrays atomically as one safetensors file."""
    with atomic_replace(path) as temporary:
        try:
            safetensors.numpy.save_file(tensors, temporary, metadata=metadata or {"format": "pt"})
        except safetensors.SafetensorError as e:
            raise OSError(str(e)) from e


class TensorReader:
    """Reader of a checkpoint folder's tensors by name; each is read from disk on request.

    Args:
        folder: holds `model.safetensors`, or `model.safetensors.index.json` and its shards.

    Raises:
        InputError: if there is no safetensors file, or one is missing, cut short or corrupt.
    """

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self._files = [self._open(path) for path in _weight_files(folder)]
        self._file_of = {name: file for file in self._files for name in file[1].keys()}  # noqa: SIM118
        self._headers = {}
        self.description = str(folder / (WEIGHTS if len(self._files) == 1 else INDEX))

    def _open(self, path):
        try:
            return path, safetensors.safe_open(str(path), framework="numpy")
        except FileNotFoundError:
            raise InputError(
                f"{path} is missing, though {INDEX} names it; copy it into the folder."
            ) from None
        except (safetensors.SafetensorError, OSError) as e:
            raise InputError(
                f"{path} is not a whole safetensors file ({e}); it may be cut short or a "
                "pickle: copy it again, or save the model with safetensors."
            ) from None

    def size(self):
        """Return the size of all files together in bytes."""
        return sum(path.stat().st_size for path, _ in self._files)

    def names(self):
        """Return the names of all tensors."""
        return list(self._file_of)

    def shape(self, name):
        """Return a tensor's shape, from the header alone."""
        return tuple(self._file_of[name][1].get_slice(name).get_shape())

    def read(self, name):
        """Return a tensor as a NumPy array; bfloat16, which NumPy lacks, as float32."""
        path, _ = self._file_of[name]
        try:
            start, header = self._header(path)
            entry = header[name]
            # Read, not mapped: pages of a mapped file would stay in memory beside the model.
            value = np.fromfile(
                path,
                DTYPES[entry["dtype"]],
                math.prod(entry["shape"]),
                offset=start + entry["data_offsets"][0],
            ).reshape(entry["shape"])
        except (ValueError, KeyError, OSError) as e:
            raise InputError(f"{path}: tensor {name} cannot be read ({e}).") from None
        if entry["dtype"] == "BF16":
            # A bfloat16 is the upper half of a float32.
            value = (value.astype("uint32") << 16).view("float32")
        return value

    def _header(self, path):
        """Return the offset of a file's data and its header."""
        if path not in self._headers:
            with open(path, "rb") as file:
                length = int.from_bytes(file.read(8), "little")
                self._headers[path] = 8 + length, json.loads(file.read(length))
        return self._headers[path]


def untouched(shape, dtype):
    """Return a tensor with uninitialised memory, which uses none until it is written."""
    if keras.backend.backend() != "tensorflow":
        return keras.ops.zeros(shape, dtype)
    import tensorflow as tf

    return tf.raw_ops.Empty(shape=shape, dtype=tf.as_dtype(dtype), init=False)


def weight_names(folder):
    """Return the names of a folder's safetensors files: the single file, else those in its index.

    The single file takes precedence over shards, as in `transformers`.
    """
    if (folder / WEIGHTS).exists() or not (folder / INDEX).exists():
        return [WEIGHTS]
    weight_map = read_json(folder / INDEX).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise InputError(f"{folder / INDEX} has no weight_map; copy the file again.")
    return sorted(set(weight_map.values()))


def _weight_files(folder):
    names = weight_names(folder)
    if names != [WEIGHTS] or (folder / WEIGHTS).exists():
        return [folder / name for name in names]
    for name in PICKLES:
        if (folder / name).exists():
            raise refused_pickle(folder / name)
    raise InputError(f"{folder} holds no {WEIGHTS} (nor {INDEX}); copy the weights into it.")
