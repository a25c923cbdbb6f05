"""Reading and writing of safetensors files, single or sharded."""

import json
import math
import pathlib

import numpy as np
import safetensors
import safetensors.numpy

from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace, read_json
from tfnlp.utils.hub import PICKLES, refused_pickle

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
# What `peft` says of an adapter in the folder of its tensors.
ADAPTER_CONFIG = "adapter_config.json"

# What files of other formats are, and what to do with them.
OTHER_FORMATS = {
    ADAPTER_CONFIG: "of an adapter (LoRA) without its model; load that, which is {base}, and add "
    "the adapter by tfnlp.checkpoints.merge_adapter(model, folder)",
    "*.ckpt*.index": "a TensorFlow 1 checkpoint (ckpt); convert it once with transformers "
    "4: from_pretrained(file, from_tf=True, config=config) and save_pretrained(folder)",
    "*.onnx": "an ONNX file, which is not read; take the model that it was exported from",
    "onnx/*.onnx": "an ONNX file, which is not read; take the model that it was exported from",
    "*.msgpack": "Flax's weights (msgpack); convert them once with transformers 4: "
    "from_pretrained(folder, from_flax=True) and save_pretrained(folder)",
}

# NumPy types by safetensors' names.
DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I8": "i1",
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
        file: the name of one file in place of these; None for these.

    Raises:
        InputError: if a safetensors file is missing, cut short or corrupt, or is a pickle; or
            if the index is broken.
    """

    def __init__(self, folder, file=None):
        folder = pathlib.Path(folder)
        names = [file] if file else weight_names(folder)
        pickles = [folder / name for name in PICKLES if (folder / name).exists()]
        if names == [WEIGHTS] and not (folder / WEIGHTS).exists():
            if pickles:
                raise refused_pickle(pickles[0])
            raise no_weights(folder)
        self.description = str(folder / (names[0] if len(names) == 1 else INDEX))
        self._paths = [folder / name for name in names]
        self._tensors = {
            name: (path, *tensor) for path in self._paths for name, tensor in _tensors(path)
        }

    def size(self):
        """Return the size of all files together in bytes."""
        return sum(path.stat().st_size for path in self._paths)

    def names(self):
        """Return the names of all tensors."""
        return list(self._tensors)

    def shape(self, name):
        """Return a tensor's shape, from the header alone."""
        return self._tensors[name][-1]

    def read(self, name):
        """Return a tensor as a NumPy array; bfloat16, which NumPy lacks, as float32.

        Raises:
            InputError: if its type is not in `DTYPES`, or a value is NaN or infinite.
        """
        path, offset, dtype, shape = self._tensors[name]
        if dtype not in DTYPES:
            raise InputError(
                f"{path}: tensor {name} is of type {dtype}, which is not read; save the model in "
                "float32 or bfloat16."
            )
        # Read, not mapped: pages of a mapped file would stay in memory beside the model.
        value = np.fromfile(path, DTYPES[dtype], math.prod(shape), offset=offset).reshape(shape)
        value = from_bfloat16(value) if dtype == "BF16" else value
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise InputError(
                f"{path}: tensor {name} has values that are not finite (NaN or infinity), as "
                "training that diverged leaves; take an earlier checkpoint."
            )
        return value


class HeldTensors:
    """Tensors in memory by name, with the interface of `TensorReader`."""

    def __init__(self, description, tensors):
        self.description, self._tensors = description, tensors

    def size(self):
        """Return the size of files, of which there are none."""
        return 0

    def names(self):
        """Return the names of all tensors."""
        return list(self._tensors)

    def shape(self, name):
        """Return a tensor's shape."""
        return tuple(self._tensors[name].shape)

    def read(self, name):
        """Return a tensor as a NumPy array."""
        return self._tensors[name]


def no_weights(folder):
    """Return the `InputError` for a local folder without weights, which says what it holds."""
    for pattern, advice in OTHER_FORMATS.items():
        for path in sorted(folder.glob(pattern)):
            if path.name == ADAPTER_CONFIG:
                base = read_json(path).get("base_model_name_or_path")
                advice = advice.format(base=base or "not named in it")
            return InputError(f"{path} is {advice}; {folder} has no {WEIGHTS}.")
    return InputError(f"{folder} has no {WEIGHTS}; copy the weights into the folder.")


def _tensors(path):
    """Yield the name, and the (offset, type, shape), of each tensor of a file."""
    try:
        safetensors.safe_open(str(path), framework="numpy")  # checks that it is whole
    except (safetensors.SafetensorError, OSError) as e:
        raise InputError(f"{path} is not a whole safetensors file ({e}); copy it again.") from None
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    for name, entry in header.items():
        if name != "__metadata__":
            start = 8 + length + entry["data_offsets"][0]
            yield name, (start, entry["dtype"], tuple(entry["shape"]))


def from_bfloat16(value):
    """Return two bytes each as float32: a bfloat16 is the upper half of one."""
    return (value.view("<u2").astype("uint32") << 16).view("float32")


def untouched(shape, dtype):
    """Return a tensor with uninitialised memory, which uses none until it is written."""
    import keras  # loads TensorFlow, which reading a folder's head does not need

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
    files = [*weight_map.values()] if isinstance(weight_map, dict) else []
    if not files or not all(_is_file_name(name) for name in files):
        raise InputError(
            f"{folder / INDEX}: weight_map must map each tensor to the name of a file in the "
            "folder; copy the file again."
        )
    return sorted(set(files))


def _is_file_name(name):
    return isinstance(name, str) and name not in ("", ".", "..") and not {*"/\\"} & {*name}
