"""Teacher outputs, computed once and cached in memory or on disk."""

import dataclasses
import json
import math
import pathlib

import numpy as np
import tensorflow as tf

from distill.learning.terms import pick_output
from tfnlp.checkpoints.tensors import DTYPES, write_tensors
from tfnlp.models import check_lengths, token_axes
from tfnlp.text import Encodings
from tfnlp.training.fingerprints import content_fingerprint, model_fingerprint
from tfnlp.training.inference import input_signature
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json, write_json
from tfnlp.utils.progress import progress_bar

INDEX = "cache.json"
# A shard is computed in memory and written whole, so a killed run loses at most one.
SHARD_BYTES = 2**27
# Parts of a cache's identity, and the words for a mismatch in each.
DIFFERENCES = {
    "teacher": "another teacher",
    "precision": "a teacher of another precision",
    "inputs": "other texts, or of texts cut to another length",
}


def output_key(output, index):
    """Return the name of a teacher output in a cache and in a batch."""
    return output if index is None else f"{output}/{index}"


@dataclasses.dataclass
class TeacherOutputs:
    """Outputs of a teacher for every example, unpadded, concatenated in shards.

    Fits `LengthBatches(targets=...)`.

    Args:
        lengths: (texts,), the number of tokens of each text.
        axes: for each key of `output_key` the axes of a text's output that run over its tokens:
            none, (0,) of tokens, (1,) of tokens by head, (1, 2) of pairs of tokens by head.
        widths: for each key the sizes of the other axes, a tuple.
        dtypes: for each key the type of the stored numbers.
        choices: number of choices of a multiple-choice example; None where an example is a text.
        firsts: (shards + 1,), the first example of each shard, and the end.
        shards: for each shard a dict of flat arrays, or memory maps, one text after the other.
    """

    lengths: np.ndarray
    axes: dict
    widths: dict
    dtypes: dict
    choices: int | None
    firsts: np.ndarray
    shards: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.texts_each = self.choices or 1
        # Offset of each text, by the number of its token axes.
        lengths = self.lengths.astype("int64")
        self.starts = [np.concatenate([[0], np.cumsum(lengths**n)]) for n in range(3)]

    def signature(self):
        """Return the `tf.TensorSpec` of each key in a batch."""
        examples = (None,) if self.choices is None else (None, self.choices)
        return {
            key: tf.TensorSpec((*examples, *self._shape(key, None)), self.dtypes[key])
            for key in self.axes
        }

    def batch(self, indices, length):
        """Return the outputs of some examples, padded with zeros to `length`.

        Returns:
            A dict of arrays of the stored types, which terms convert to float32: by text (B, ...),
            per token (B, length, ...), per head (B, N, length, H), per pair (B, N, length,
            length). With choices (B, choices, ...), so that a batch can be split by its examples.
        """
        batch, texts = {}, self.texts(np.asarray(indices))
        for key in self.axes:
            values = np.zeros((len(texts), *self._shape(key, length)), self.dtypes[key])
            for row, i in enumerate(texts):
                values[(row, *self.real_tokens(key, i))] = self._read(key, i)
            if self.choices is not None:
                values = values.reshape(len(indices), -1, *values.shape[1:])
            batch[key] = values
        return batch

    def texts(self, examples):
        """Return the indices of the texts of some examples."""
        return (examples[:, None] * self.texts_each + np.arange(self.texts_each)).ravel()

    def place(self, key, i, shard):
        """Return the slice of text `i` in a flat array of its shard."""
        starts, size = self.starts[len(self.axes[key])], math.prod(self.widths[key])
        first = starts[self.firsts[shard] * self.texts_each]
        return slice(int(starts[i] - first) * size, int(starts[i + 1] - first) * size)

    def real_tokens(self, key, i):
        """Return the slices of text `i`'s tokens in its padded output, a tuple."""
        axes = self.axes[key]
        real, every = slice(self.lengths[i]), slice(None)
        return tuple(real if axis in axes else every for axis in range(max(axes, default=-1) + 1))

    def _shape(self, key, length):
        """Return a text's shape: `length` at the token axes, the widths at the others."""
        shape = list(self.widths[key])
        for axis in self.axes[key]:
            shape.insert(axis, length)
        return tuple(shape)

    def _read(self, key, i):
        shard = np.searchsorted(self.firsts, i // self.texts_each, side="right") - 1
        values = self.shards[shard][key][self.place(key, i, shard)]
        return values.reshape(self._shape(key, self.lengths[i]))


@dataclasses.dataclass
class StackedOutputs:
    """Outputs of several teachers, stacked as `Ensemble` does: (B, teachers, ...).

    Args:
        parts: a `TeacherOutputs` for each.
    """

    parts: list

    def signature(self):
        return {
            key: tf.TensorSpec((None, len(self.parts), *spec.shape[1:]), spec.dtype)
            for key, spec in self.parts[0].signature().items()
        }

    def batch(self, indices, length):
        batches = [part.batch(indices, length) for part in self.parts]
        return {key: np.stack([batch[key] for batch in batches], axis=1) for key in batches[0]}


def compute_teacher_outputs(teacher, batches, tensors, folder=None):
    """Run the teacher over all examples once, and cache the outputs that the losses read.

    Args:
        teacher: a `keras.Model` with the outputs that `tensors` names.
        batches: `LengthBatches` over the examples, encoded for the teacher.
        tensors: (output, index or None) pairs, the `teacher` of each term.
        folder: where to cache the outputs on disk, in float16 except the logits; in memory where
            None. A cache of the same teacher and examples is used again, and an unfinished one is
            resumed. It is read batch by batch, so it may be larger than the memory.

    Returns:
        `TeacherOutputs`.

    Raises:
        InputError: if a text is longer than the teacher's positions, an output is too large for
            float16, or the folder holds the cache of another teacher, of other texts or of other
            outputs.
    """
    check_lengths(batches, teacher)
    tensors = sorted(set(tensors), key=lambda tensor: (tensor[0], tensor[1] or 0))
    axes = {output_key(*tensor): _token_axes(teacher, *tensor) for tensor in tensors}
    forward = _forward(teacher, tensors)
    if folder is not None:
        return _on_disk(pathlib.Path(folder), teacher, batches, axes, forward)
    firsts, widths = [0, len(batches.encodings)], _widths(forward, batches, axes)
    outputs = _without_shards(batches, axes, widths, firsts, dtype=lambda key: "float32")
    with _progress(outputs, [0]) as bar:
        outputs.shards.append(_compute_shard(outputs, 0, forward, batches, bar))
    return outputs


def _on_disk(folder, teacher, batches, axes, forward):
    """Return `TeacherOutputs` that are read from a folder, after computing the missing shards."""
    made_from = {
        "teacher": model_fingerprint(teacher),
        "precision": sorted({layer.compute_dtype for layer in teacher.layers}),
        "inputs": batches.inputs_fingerprint(),
    }
    index = _read_index(folder, made_from, axes)
    if index is None:
        widths = _widths(forward, batches, axes)
        firsts = _split_into_shards(_without_shards(batches, axes, widths, [0]))
        index = {"made_from": made_from, "widths": widths, "firsts": firsts}
        write_json(folder / INDEX, index)
    index_fingerprint = content_fingerprint(index)
    widths = {key: tuple(index["widths"][key]) for key in axes}
    outputs = _without_shards(batches, axes, widths, index["firsts"])
    paths = [folder / f"shard_{i:05d}.safetensors" for i in range(len(outputs.firsts) - 1)]
    missing = [i for i, path in enumerate(paths) if not path.exists()]
    if missing and axes.keys() != index["widths"].keys():
        raise InputError(
            f"{folder} is an unfinished cache of other outputs too; delete it to compute it again."
        )
    if missing:
        with _progress(outputs, missing) as bar:
            for i in missing:
                shard = _compute_shard(outputs, i, forward, batches, bar)
                write_tensors(paths[i], shard, {"index": index_fingerprint})
    outputs.shards = [_map_shard(path, index_fingerprint) for path in paths]
    return outputs


def _stored_dtype(key):
    return "float32" if key.endswith("logits") else "float16"


def _without_shards(batches, axes, widths, firsts, dtype=_stored_dtype):
    """Return the `TeacherOutputs` of batches, to be filled with shards."""
    encodings = Encodings.from_list(batches.encodings)
    dtypes = {key: dtype(key) for key in axes}
    lengths, firsts = np.diff(encodings.starts), np.array(firsts)
    return TeacherOutputs(lengths, axes, widths, dtypes, choices=encodings.choices, firsts=firsts)


def _read_index(folder, made_from, keys):
    """Return the index of a folder's cache, or None if it has none.

    Raises:
        InputError: if the cache is of another version, teacher, text or set of outputs.
    """
    if not (folder / INDEX).exists():
        return None
    index = read_json(folder / INDEX)
    stored, widths = index.get("made_from"), index.get("widths")
    if not isinstance(stored, dict) or not isinstance(widths, dict):
        raise InputError(
            f"{folder} holds no cache of this version; delete it to compute it again."
        )
    differences = [text for key, text in DIFFERENCES.items() if stored.get(key) != made_from[key]]
    differences += [f"this teacher, but without {key}" for key in sorted(keys - widths.keys())]
    if differences:
        raise InputError(
            f"{folder} caches the outputs of {differences[0]}; delete it or give another."
        )
    return index


def _map_shard(path, index_fingerprint):
    """Return the flat arrays of a shard, memory-mapped."""
    try:
        with open(path, "rb") as file:
            start = 8 + int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(start - 8))
        if header.pop("__metadata__")["index"] != index_fingerprint:
            raise ValueError("it is of another cache")
        data = np.asarray(np.memmap(path, "uint8", "r", offset=start))
        if len(data) != max(entry["data_offsets"][1] for entry in header.values()):
            raise ValueError("it is cut short")
        return {
            key: data[slice(*entry["data_offsets"])]
            .view(DTYPES[entry["dtype"]])
            .reshape(entry["shape"])
            for key, entry in header.items()
        }
    except (OSError, ValueError, KeyError) as e:
        raise InputError(
            f"{path} is no complete shard ({e}); delete it to compute it again."
        ) from None


def _token_axes(teacher, output, index):
    """Return the token axes of an output for one text."""
    axes = token_axes(teacher, output, pick_output(teacher.output, output, index))
    return tuple(axis - 1 for axis in axes)


def _forward(teacher, tensors):
    """Build a function from inputs to a dict of the outputs that `tensors` names, in float32."""

    @tf.function(input_signature=[input_signature(teacher)])
    def forward(inputs):
        outputs = teacher(inputs, training=False)
        outputs = {output_key(*tensor): pick_output(outputs, *tensor) for tensor in tensors}
        if getattr(teacher, "head", None) == "chooser" and "logits" in outputs:
            # One logit a text, since a chooser's other outputs are by text too.
            outputs["logits"] = tf.reshape(outputs["logits"], (-1,))
        return {key: tf.cast(x, "float32") for key, x in outputs.items()}

    return forward


def _widths(forward, batches, axes):
    """Return the sizes of axes other than tokens, by running the teacher on one example."""
    shapes = {key: x.shape[1:] for key, x in forward(batches.batch(np.array([0]))[0]).items()}
    return {
        key: tuple(size for axis, size in enumerate(shapes[key]) if axis not in token_axes)
        for key, token_axes in axes.items()
    }


def _split_into_shards(outputs):
    """Return the first example of each shard of about `SHARD_BYTES`, and the end."""
    ends = 0  # bytes up to the end of each example
    step = outputs.texts_each
    for key, axes in outputs.axes.items():
        size = np.dtype(outputs.dtypes[key]).itemsize * math.prod(outputs.widths[key])
        ends = ends + size * outputs.starts[len(axes)][step::step]
    firsts = [0]
    while firsts[-1] < len(ends):
        before = ends[firsts[-1] - 1] if firsts[-1] else 0
        following = np.searchsorted(ends, before + SHARD_BYTES, side="right")
        firsts.append(max(int(following), firsts[-1] + 1))
    return firsts


def _progress(outputs, missing):
    """Return the progress bar of all examples, advanced past the shards already computed."""
    sizes = np.diff(outputs.firsts)
    total, remaining = int(sizes.sum()), int(sizes[missing].sum())
    return progress_bar(total=total, initial=total - remaining, desc="teacher", unit="example")


def _compute_shard(outputs, shard, forward, batches, bar):
    """Compute the flat arrays of a shard.

    Raises:
        InputError: if an output is too large for float16.
    """
    first, end = outputs.firsts[shard : shard + 2]
    last = outputs.texts(np.array([end - 1]))[-1]
    arrays = {
        key: np.empty(outputs.place(key, last, shard).stop, dtype)
        for key, dtype in outputs.dtypes.items()
    }
    order = first + np.argsort(batches.lengths[first:end], kind="stable")
    for start in range(0, len(order), batches.batch_size):
        indices = order[start : start + batches.batch_size]
        for key, tensor in forward(batches.batch(indices)[0]).items():
            for row, i in zip(tensor.numpy(), outputs.texts(indices), strict=True):
                with np.errstate(over="ignore"):
                    real = row[outputs.real_tokens(key, i)]
                    arrays[key][outputs.place(key, i, shard)] = real.ravel()
        bar.update(len(indices))
    for key, array in arrays.items():
        if array.dtype == "float16" and not np.isfinite(array).all():
            raise InputError(
                f"The teacher's {key} go beyond {np.finfo('float16').max:.0f}, the most that a "
                "cache on disk can hold; distil without `cache_dir`."
            )
    return arrays
