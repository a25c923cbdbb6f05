"""Teacher outputs, computed once and cached in memory or on disk."""

import contextlib
import dataclasses
import functools
import math
import pathlib

import keras
import numpy as np
import safetensors
import tensorflow as tf

from distill.learning.terms import pick_output
from tfnlp.checkpoints.tensors import write_tensors
from tfnlp.models import check_lengths, reads_choices, token_axes
from tfnlp.text import Encodings
from tfnlp.training.run.fingerprints import content_fingerprint, model_fingerprint
from tfnlp.training.run.inference import input_signature
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json, write_json
from tfnlp.utils.progress import progress_bar
from tfnlp.utils.shard_work import in_this_process

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


@dataclasses.dataclass(frozen=True)
class Layout:
    """Shape and type of an output for one text.

    Args:
        axes: those that run over the tokens: none, (0,) of tokens, (1,) of tokens by head, (1, 2)
            of pairs of tokens by head.
        widths: the sizes of the other axes, a tuple.
        dtype: of the stored numbers.
    """

    axes: tuple
    widths: tuple
    dtype: str

    @classmethod
    def of_output(cls, teacher, output, index, dtype):
        """Return the layout of an output of a teacher."""
        tensor = pick_output(teacher.output, output, index)
        axes = tuple(axis - 1 for axis in token_axes(teacher, output, tensor))
        return cls(axes, tuple(size for size in tensor.shape[1:] if size is not None), dtype)

    def shape(self, length):
        """Return the shape of the output for a text of `length` tokens."""
        shape = list(self.widths)
        for axis in self.axes:
            shape.insert(axis, length)
        return tuple(shape)


@dataclasses.dataclass
class TeacherOutputs:
    """Outputs of a teacher for every example, unpadded, concatenated in shards.

    Fits `LengthBatches(targets=...)`.

    Args:
        lengths: (texts,), the number of tokens of each text.
        layouts: {key of `output_key`: `Layout`}.
        choices: number of choices of a multiple-choice example; None where an example is a text.
        firsts: (shards + 1,), the first example of each shard, and the end.
        shards: for each shard a dict of flat arrays, one text after the other, of which slices are
            read.
    """

    lengths: np.ndarray
    layouts: dict
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
            key: tf.TensorSpec((*examples, *layout.shape(None)), layout.dtype)
            for key, layout in self.layouts.items()
        }

    def batch(self, indices, length):
        """Return the outputs of some examples, padded with zeros to `length`.

        Returns:
            A dict of arrays of the stored types, which terms convert to float32: by text (B, ...),
            per token (B, length, ...), per head (B, N, length, H), per pair (B, N, length,
            length). With choices (B, choices, ...), so that a batch can be split by its examples.
        """
        batch, texts = {}, self.texts(np.asarray(indices))
        shards = np.searchsorted(self.firsts, texts // self.texts_each, side="right") - 1
        for key, layout in self.layouts.items():
            values = np.zeros((len(texts), *layout.shape(length)), layout.dtype)
            for row, place in enumerate(self.places(key, texts, shards)):
                if place.start < place.stop:
                    shape = layout.shape(self.lengths[texts[row]])
                    flat = self.shards[shards[row]][key][place]
                    values[(row, *map(slice, shape))] = flat.reshape(shape)
            if self.choices is not None:
                values = values.reshape(len(indices), -1, *values.shape[1:])
            batch[key] = values
        return batch

    def texts(self, examples):
        """Return the indices of the texts of some examples."""
        return (examples[:, None] * self.texts_each + np.arange(self.texts_each)).ravel()

    def places(self, key, texts, shards):
        """Return the slice of each text in a flat array of its shard, a list."""
        layout = self.layouts[key]
        starts, size = self.starts[len(layout.axes)], math.prod(layout.widths)
        first = starts[self.firsts[shards] * self.texts_each]
        bounds = size * (starts[texts] - first), size * (starts[texts + 1] - first)
        return list(map(slice, *(bound.tolist() for bound in bounds)))


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


def compute_teacher_outputs(teacher, batches, tensors, folder=None, map_shards=None):
    """Run the teacher over all examples once, and cache the outputs that the losses read.

    Args:
        teacher: a `keras.Model` with the outputs that `tensors` names.
        batches: `LengthBatches` over the examples, encoded for the teacher.
        tensors: (output, index or None) pairs, the `teacher` of each term.
        folder: where to cache the outputs on disk, in float16 except the logits; in memory where
            None. A cache of the same teacher and examples is used again, and an unfinished one is
            resumed. It is read batch by batch, so it may be larger than the memory.
        map_shards: of `tfnlp.utils.shard_work`, such as `in_beam(runner)`, whose workers must
            all see the folder; in this process where None.

    Returns:
        `TeacherOutputs`.

    Raises:
        InputError: if a text is longer than the teacher's positions, an output is too large for
            float16, or the folder holds the cache of another teacher, of other texts or of other
            outputs.
    """
    check_lengths(batches, teacher)
    tensors = {output_key(*tensor): tensor for tensor in sorted(set(tensors), key=str)}
    layouts = {}
    for key, tensor in tensors.items():
        dtype = "float32" if folder is None or key.endswith("logits") else "float16"
        layouts[key] = Layout.of_output(teacher, *tensor, dtype)
    encodings = Encodings.from_list(batches.encodings)
    lengths, firsts = np.diff(encodings.starts), np.array([0, len(encodings)])
    outputs = TeacherOutputs(lengths, layouts, encodings.choices, firsts)
    if folder is not None:
        folder = pathlib.Path(folder).absolute()
        missing, fingerprint = _missing_shards(folder, teacher, batches, outputs)
        work = (_shard_work(number, outputs, batches) for number in missing)
        with (
            _progress(outputs, missing) as bar,
            _teacher_file(folder, teacher, map_shards and missing) as file,
        ):
            read = functools.partial(keras.models.load_model, file) if file else lambda: teacher
            load = functools.partial(_shard_maker, folder, fingerprint, read, tensors)
            if map_shards is None:  # shards are large, so that the bar counts batches
                work = ((number, part, _shown(inputs, bar)) for number, part, inputs in work)
            for _, part, _ in (map_shards or in_this_process)(load, work) if missing else ():
                if map_shards is not None:
                    bar.update(int(part.firsts[-1]))
        outputs.shards = [
            _open_shard(_shard_path(folder, number), fingerprint, layouts.keys())
            for number in range(len(outputs.firsts) - 1)
        ]
        return outputs
    _, part, inputs = _shard_work(0, outputs, batches)
    with _progress(outputs, [0]) as bar:
        outputs.shards.append(
            _compute_shard(part, _shown(inputs, bar), _forward(teacher, tensors))
        )
    return outputs


def _missing_shards(folder, teacher, batches, outputs):
    """Divide outputs into the shards of a folder.

    Returns:
        The numbers of the missing shards, and the fingerprint of all.
    """
    made_from = {
        "teacher": model_fingerprint(teacher),
        "precision": sorted({layer.compute_dtype for layer in teacher.layers}),
        "inputs": batches.inputs_fingerprint(),
    }
    keys = outputs.layouts.keys()
    if (folder / INDEX).exists():
        index = read_json(folder / INDEX)
        stored = index["made_from"]
        differences = [text for key, text in DIFFERENCES.items() if stored[key] != made_from[key]]
        missing_keys = sorted(keys - index["widths"].keys())
        differences += [f"this teacher, but without {key}" for key in missing_keys]
        if differences:
            raise InputError(
                f"{folder} caches the outputs of {differences[0]}; delete it or give another."
            )
    else:
        widths = {key: layout.widths for key, layout in outputs.layouts.items()}
        index = {"made_from": made_from, "widths": widths, "firsts": _split_into_shards(outputs)}
        write_json(folder / INDEX, index)
    outputs.firsts = np.array(index["firsts"])
    numbers = range(len(outputs.firsts) - 1)
    missing = [number for number in numbers if not _shard_path(folder, number).exists()]
    if missing and keys != index["widths"].keys():
        raise InputError(
            f"{folder} is an unfinished cache of other outputs too; delete it to compute it again."
        )
    return missing, content_fingerprint(index)


def _shard_path(folder, number):
    return folder / f"shard_{number:05d}.safetensors"


def _open_shard(path, index_fingerprint, keys):
    """Return the flat arrays of a shard, of which slices are read from disk."""
    reason = "it is of another cache"
    try:
        file = safetensors.safe_open(str(path), framework="numpy")
        if file.metadata()["index"] == index_fingerprint:
            return {key: file.get_slice(key) for key in keys}
    except (OSError, safetensors.SafetensorError) as e:
        reason = e
    raise InputError(f"{path} is no complete shard ({reason}); delete it to compute it again.")


def _forward(teacher, tensors):
    """Build a function from inputs to a dict of the outputs that `tensors` names, in float32."""

    @tf.function(input_signature=[input_signature(teacher)])
    def forward(inputs):
        outputs = teacher(inputs, training=False)
        outputs = {key: pick_output(outputs, *tensor) for key, tensor in tensors.items()}
        if reads_choices(teacher) and "logits" in outputs:
            # One logit a text, since a chooser's other outputs are by text too.
            outputs["logits"] = tf.reshape(outputs["logits"], (-1,))
        return {key: tf.cast(x, "float32") for key, x in outputs.items()}

    return forward


def _split_into_shards(outputs):
    """Return the first example of each shard of about `SHARD_BYTES`, and the end."""
    ends = 0  # bytes up to the end of each example
    step = outputs.texts_each
    for layout in outputs.layouts.values():
        size = np.dtype(layout.dtype).itemsize * math.prod(layout.widths)
        ends = ends + size * outputs.starts[len(layout.axes)][step::step]
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


def _shard_work(number, outputs, batches):
    """Return the work of a shard, which depends on its examples alone.

    Returns:
        Its number, the `TeacherOutputs` of its examples, and a list of the indices of the examples
        of each batch, with the inputs.
    """
    first, end = outputs.firsts[number : number + 2].tolist()
    lengths = outputs.lengths[first * outputs.texts_each : end * outputs.texts_each]
    firsts = np.array([0, end - first])
    part = TeacherOutputs(lengths, outputs.layouts, outputs.choices, firsts)
    order, size = np.argsort(batches.lengths[first:end], kind="stable"), batches.batch_size
    parts = [order[start : start + size] for start in range(0, len(order), size)]
    return number, part, [(indices, batches.batch(first + indices)[0]) for indices in parts]


def _shown(inputs, bar):
    for indices, batch in inputs:
        yield indices, batch
        bar.update(len(indices))


@contextlib.contextmanager
def _teacher_file(folder, teacher, needed):
    """Yield the path of a file of the teacher for other processes; None unless it is needed."""
    path = folder / "teacher.keras"
    if not needed:
        yield None
        return
    teacher.save(path)
    yield path
    path.unlink()


def _shard_maker(folder, fingerprint, read, tensors):
    """Return a function that writes a shard, from the result of `_shard_work`."""
    forward = _forward(read(), tensors)

    def make(item):
        number, part, inputs = item
        arrays = _compute_shard(part, inputs, forward)
        write_tensors(_shard_path(folder, number), arrays, {"index": fingerprint})

    return make


def _compute_shard(part, inputs, forward):
    """Compute the flat arrays of a shard from the results of `_shard_work`.

    Raises:
        InputError: if an output is too large for float16.
    """
    last = part.texts(part.firsts[1:] - 1)[-1:]
    arrays = {
        key: np.empty(part.places(key, last, 0)[0].stop, layout.dtype)
        for key, layout in part.layouts.items()
    }
    for indices, batch in inputs:
        texts = part.texts(indices)
        for key, tensor in forward(batch).items():
            shapes = map(part.layouts[key].shape, part.lengths[texts])
            rows = zip(tensor.numpy(), shapes, part.places(key, texts, 0), strict=True)
            for row, shape, place in rows:
                real = row[tuple(map(slice, shape))]
                with np.errstate(over="ignore"):
                    arrays[key][place] = real.ravel()
    for key, array in arrays.items():
        if array.dtype == "float16" and not np.isfinite(array).all():
            raise InputError(
                f"The teacher's {key} go beyond {np.finfo('float16').max:.0f}, the most that a "
                "cache on disk can hold; distil without `cache_dir`."
            )
    return arrays
