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
        firsts: (shards + 1,), the first example of each shard, and the end.
        shards: for each shard a dict of flat arrays, or memory maps, one text after the other.
        choices: number of choices of a multiple-choice example; None where an example is a text.
    """

    lengths: np.ndarray
    axes: dict
    widths: dict
    firsts: np.ndarray
    shards: list
    choices: int | None = None

    def __post_init__(self):
        self.texts_each = self.choices or 1
        # Offset of each text, by the number of its token axes.
        lengths = self.lengths.astype("int64")
        self.starts = [np.concatenate([[0], np.cumsum(lengths**n)]) for n in range(3)]

    def signature(self):
        """Return the `tf.TensorSpec` of each key in a batch."""
        specs = {}
        for key, width in self.widths.items():
            rows = (None,) if self.choices is None else (None, self.choices)
            shape = _shape(self.axes[key], None, width)
            specs[key] = tf.TensorSpec((*rows, *shape), self._dtype(key))
        return specs

    def batch(self, indices, length):
        """Return the outputs of some examples, padded with zeros to `length`.

        Returns:
            A dict of arrays of the stored types, which terms convert to float32: by text (B, ...),
            per token (B, length, ...), per head (B, N, length, H), per pair (B, N, length,
            length). With choices (B, choices, ...), so that a batch can be split by its examples.
        """
        batch, texts = {}, self.texts(np.asarray(indices))
        for key, width in self.widths.items():
            axes = self.axes[key]
            values = np.zeros((len(texts), *_shape(axes, length, width)), self._dtype(key))
            for row, i in enumerate(texts):
                n = self.lengths[i]
                values[(row, *_real(axes, n))] = self._read(key, i).reshape(_shape(axes, n, width))
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

    def _dtype(self, key):
        return self.shards[0][key].dtype

    def _read(self, key, i):
        shard = np.searchsorted(self.firsts, i // self.texts_each, side="right") - 1
        return self.shards[shard][key][self.place(key, i, shard)]


def _shape(axes, length, width):
    """Return a text's shape: `length` at the token axes, `width` at the others."""
    shape = list(width)
    for axis in axes:
        shape.insert(axis, length)
    return tuple(shape)


def _real(axes, length):
    """Return the slices of the real tokens in a text's padded output, a tuple."""
    last = max(axes, default=-1)
    return tuple(slice(length) if axis in axes else slice(None) for axis in range(last + 1))


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
        found = [part.batch(indices, length) for part in self.parts]
        return {key: np.stack([part[key] for part in found], axis=1) for key in found[0]}


def compute_teacher_outputs(teacher, batches, reads, folder=None):
    """Run the teacher over all examples once, and cache the outputs that the losses read.

    Args:
        teacher: a `keras.Model` with the outputs that `reads` names.
        batches: `LengthBatches` over the examples, encoded for the teacher.
        reads: (output, index or None) pairs, the `teacher` of each term.
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
    reads = sorted(set(reads), key=lambda read: (read[0], read[1] or 0))
    axes = {output_key(*r): _axes(teacher, *r) for r in reads}
    encodings = Encodings.from_list(batches.encodings)
    lengths, choices = np.diff(encodings.starts), encodings.choices
    forward = _forward(teacher, reads)
    if folder is None:
        firsts = np.array([0, len(batches.encodings)])
        widths = _widths(forward, batches, axes)
        outputs = TeacherOutputs(lengths, axes, widths, firsts, [], choices)
        with _bar(outputs) as bar:
            outputs.shards.append(_compute(outputs, 0, forward, batches, lambda _: "float32", bar))
        return outputs
    folder = pathlib.Path(folder)
    made_from = {
        "teacher": model_fingerprint(teacher),
        "precision": sorted({layer.compute_dtype for layer in teacher.layers}),
        "inputs": batches.inputs_fingerprint(),
    }
    index = _stored_index(folder, made_from, axes)
    if index is None:
        widths = _widths(forward, batches, axes)
        outputs = TeacherOutputs(lengths, axes, widths, [0], [], choices)
        index = {"made_from": made_from, "widths": widths, "firsts": _firsts(outputs)}
        write_json(folder / INDEX, index)
    widths = {key: tuple(index["widths"][key]) for key in axes}
    outputs = TeacherOutputs(lengths, axes, widths, np.array(index["firsts"]), [], choices)
    whole_index = content_fingerprint(index)
    paths = [folder / f"shard_{i:05d}.safetensors" for i in range(len(outputs.firsts) - 1)]
    missing = [i for i, path in enumerate(paths) if not path.exists()]
    if missing and axes.keys() != index["widths"].keys():
        raise InputError(
            f"{folder} is an unfinished cache of other outputs too; delete it to make it anew."
        )
    if missing:
        with _bar(outputs, missing) as bar:
            for i in missing:
                shard = _compute(outputs, i, forward, batches, _stored_dtype, bar)
                write_tensors(paths[i], shard, {"index": whole_index})
    outputs.shards = [_mapped(path, whole_index) for path in paths]
    return outputs


def _stored_index(folder, made_from, keys):
    """Return the index of a folder's cache, or None if it has none.

    Raises:
        InputError: if the cache is of another version, teacher, text or set of outputs.
    """
    if not (folder / INDEX).exists():
        return None
    index = read_json(folder / INDEX)
    stored, widths = index.get("made_from"), index.get("widths")
    if not isinstance(stored, dict) or not isinstance(widths, dict):
        raise InputError(f"{folder} holds no cache of this version; delete it to make it anew.")
    of = [text for key, text in DIFFERENCES.items() if stored.get(key) != made_from[key]]
    of += [f"this teacher, but without {key}" for key in sorted(keys - widths.keys())]
    if of:
        raise InputError(f"{folder} caches the outputs of {of[0]}; delete it or give another.")
    return index


def _mapped(path, index):
    """Return the flat arrays of a shard, memory-mapped."""
    try:
        with open(path, "rb") as file:
            start = 8 + int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(start - 8))
        if header.pop("__metadata__")["index"] != index:
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
        raise InputError(f"{path} is no whole shard ({e}); delete it to make it anew.") from None


def _axes(teacher, output, index):
    """Return the token axes of an output for one text."""
    axes = token_axes(teacher, output, pick_output(teacher.output, output, index))
    return tuple(axis - 1 for axis in axes)


def _stored_dtype(key):
    return "float32" if key.endswith("logits") else "float16"


def _forward(teacher, reads):
    """Build a function from inputs to a dict of the outputs that `reads` names, in float32."""

    @tf.function(input_signature=[input_signature(teacher)])
    def forward(inputs):
        outputs = teacher(inputs, training=False)
        outputs = {output_key(*read): pick_output(outputs, *read) for read in reads}
        if getattr(teacher, "head", None) == "chooser" and "logits" in outputs:
            # One logit a text, since a chooser's other outputs are by text too.
            outputs["logits"] = tf.reshape(outputs["logits"], (-1,))
        return {key: tf.cast(x, "float32") for key, x in outputs.items()}

    return forward


def _widths(forward, batches, axes):
    """Return the sizes of axes other than tokens, by running the teacher on one example."""
    found = forward(batches.batch(np.array([0]))[0])
    return {
        key: tuple(size for axis, size in enumerate(found[key].shape[1:]) if axis not in axes[key])
        for key in axes
    }


def _firsts(outputs):
    """Return the first example of each shard of about `SHARD_BYTES`, and the end."""
    ends = 0  # bytes up to the end of each example
    step = outputs.texts_each
    for key, axes in outputs.axes.items():
        size = np.dtype(_stored_dtype(key)).itemsize * math.prod(outputs.widths[key])
        ends = ends + size * outputs.starts[len(axes)][step::step]
    firsts = [0]
    while firsts[-1] < len(ends):
        before = ends[firsts[-1] - 1] if firsts[-1] else 0
        following = np.searchsorted(ends, before + SHARD_BYTES, side="right")
        firsts.append(max(int(following), firsts[-1] + 1))
    return firsts


def _bar(outputs, missing=None):
    """Return the progress bar of all examples, advanced past the shards already computed."""
    sizes = np.diff(outputs.firsts)
    todo = int(sizes.sum() if missing is None else sizes[missing].sum())
    total = int(sizes.sum())
    return progress_bar(total=total, initial=total - todo, desc="teacher", unit="example")


def _compute(outputs, shard, forward, batches, dtype, bar):
    """Compute the flat arrays of a shard, each of type `dtype(key)`."""
    first, end = outputs.firsts[shard : shard + 2]
    arrays = {}
    last = outputs.texts(np.array([end - 1]))[-1]
    for key in outputs.axes:
        arrays[key] = np.empty(outputs.place(key, last, shard).stop, dtype(key))
    order = first + np.argsort(batches.lengths[first:end], kind="stable")
    for start in range(0, len(order), batches.batch_size):
        indices = order[start : start + batches.batch_size]
        for key, tensor in forward(batches.batch(indices)[0]).items():
            for row, i in zip(tensor.numpy(), outputs.texts(indices), strict=True):
                with np.errstate(over="ignore"):
                    real = row[_real(outputs.axes[key], outputs.lengths[i])]
                    arrays[key][outputs.place(key, i, shard)] = real.ravel()
        bar.update(len(indices))
    for key, array in arrays.items():
        if array.dtype == "float16" and not np.isfinite(array).all():
            raise InputError(
                f"The teacher's {key} go beyond {np.finfo('float16').max:.0f}, the most that a "
                "cache on disk can hold; distil without `cache_dir`."
            )
    return arrays
