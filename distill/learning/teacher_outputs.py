"""A teacher's outputs, computed once and kept, in memory or on disk."""

import dataclasses
import pathlib

import numpy as np
import tensorflow as tf

from tfnlp.errors import InputError
from tfnlp.files import read_json, write_json
from tfnlp.models import check_lengths
from tfnlp.progress import progress_bar
from tfnlp.training.fingerprint import model_fingerprint


def output_key(output, index):
    """The name of one teacher output in a cache and in a batch."""
    return output if index is None else f"{output}/{index}"


@dataclasses.dataclass
class TeacherOutputs:
    """Outputs of a teacher for every example, without padding, end to end.

    Fits `LengthBatches(targets=...)`.

    Args:
        lengths: tokens of each example.
        values: for each key of `output_key` a flat array: logits (examples, C), hidden
            states (tokens, D), scores (sum of squared lengths, N).
    """

    lengths: np.ndarray
    values: dict

    def __post_init__(self):
        self.starts, self.square_starts = _starts(self.lengths)

    def signature(self):
        """The `tf.TensorSpec` of each key in a batch."""
        shapes = {"logits": lambda c: (None, c), "hidden_states": lambda d: (None, None, d)}
        shapes["attention_scores"] = lambda n: (None, n, None, None)
        return {
            key: tf.TensorSpec(shapes[key.split("/")[0]](value.shape[1]), "float32")
            for key, value in self.values.items()
        }

    def batch(self, indices, length):
        """The outputs of some examples, padded with zeros to `length`."""
        readers = {
            "logits": self._logits,
            "hidden_states": self._hidden_states,
            "attention_scores": self._attention_scores,
        }
        return {
            key: readers[key.split("/")[0]](value, indices, length)
            for key, value in self.values.items()
        }

    def _logits(self, value, indices, length):
        return value[indices].astype("float32")

    def _hidden_states(self, value, indices, length):
        batch = np.zeros((len(indices), length, value.shape[1]), "float32")
        for row, i in enumerate(indices):
            batch[row, : self.lengths[i]] = value[self.starts[i] : self.starts[i + 1]]
        return batch

    def _attention_scores(self, value, indices, length):
        batch = np.zeros((len(indices), value.shape[1], length, length), "float32")
        for row, i in enumerate(indices):
            n = self.lengths[i]
            flat = value[self.square_starts[i] : self.square_starts[i + 1]]  # (n * n, N)
            batch[row, :, :n, :n] = flat.reshape(n, n, -1).transpose(2, 0, 1)
        return batch


def compute_teacher_outputs(teacher, batches, reads, folder=None):
    """Runs the teacher over all examples once and keeps what the losses read.

    Args:
        teacher: a `keras.Model` with the outputs that `reads` names.
        batches: `LengthBatches` over the examples.
        reads: (output, index or None) pairs, the losses' `reads()`.
        folder: where to cache the outputs on disk, in float16 save the logits; a cache of
            the same teacher and examples is used again. In memory where None.

    Returns:
        `TeacherOutputs`.

    Raises:
        InputError: if a text is longer than the teacher's positions, the teacher's logits are
            those of tokens, or the folder holds the cache of another teacher or of other examples.
    """
    check_lengths(batches, teacher)
    reads = sorted(set(reads), key=lambda read: (read[0], read[1] or 0))
    if folder is None:
        return TeacherOutputs(batches.lengths, _compute(teacher, batches, reads, _array))
    folder = pathlib.Path(folder)
    made_from = {
        "teacher": model_fingerprint(teacher),
        "inputs": batches.inputs_fingerprint(),
        "reads": [list(r) for r in reads],
    }
    paths = {output_key(*r): folder / f"{output_key(*r).replace('/', '_')}.npy" for r in reads}
    if (folder / "cache.json").exists():
        if read_json(folder / "cache.json") != made_from:
            raise InputError(
                f"{folder} caches the outputs of another teacher, other texts or other layers; "
                "give another folder or delete it."
            )
    else:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _compute(
                teacher,
                batches,
                reads,
                lambda key, shape: np.lib.format.open_memmap(
                    paths[key],
                    "w+",
                    dtype="float32" if key == "logits" else "float16",
                    shape=shape,
                ),
            )
        except OSError as e:
            raise InputError(
                f"{folder}: the teacher's outputs could not be cached ({e.strerror or e}); free "
                "space or choose another folder."
            ) from e
        # Written last: a folder without it is an unfinished cache, computed anew.
        write_json(folder / "cache.json", made_from)
    try:
        values = {key: np.load(path, mmap_mode="r") for key, path in paths.items()}
    except (OSError, ValueError) as e:
        raise InputError(f"{folder} is no whole cache ({e}); delete it to make it anew.") from None
    return TeacherOutputs(batches.lengths, values)


def _starts(lengths):
    """Where each example's tokens, and its pairs of tokens, begin."""
    squares = lengths.astype("int64") ** 2
    return np.concatenate([[0], np.cumsum(lengths)]), np.concatenate([[0], np.cumsum(squares)])


def _array(key, shape):
    return np.empty(shape, "float32")


def _compute(teacher, batches, reads, allocate):
    outputs = {output_key(*read): _pick(teacher.output, *read) for read in reads}
    forward = tf.function(
        lambda inputs: {
            output_key(*read): _pick(teacher(inputs, training=False), *read) for read in reads
        },
        reduce_retracing=True,
    )
    lengths = batches.lengths
    starts, square_starts = _starts(lengths)
    rows = {
        "logits": len(lengths),
        "hidden_states": int(starts[-1]),
        "attention_scores": int(square_starts[-1]),
    }
    values = {}
    for key, tensor in outputs.items():
        kind = key.split("/")[0]
        if kind == "logits" and len(tensor.shape) != 2:
            raise InputError(
                f"The teacher's logits are {tuple(tensor.shape)}, for each token, and those of "
                "texts alone, (texts, classes), are kept; distil with the teacher running."
            )
        width = tensor.shape[1] if kind == "attention_scores" else tensor.shape[-1]
        values[key] = allocate(key, (rows[kind], width))
    for indices in progress_bar(batches.order(), desc="teacher", unit="batch"):
        found = forward(batches.batch(indices)[0])
        for key, tensor in found.items():
            value = values[key]
            tensor = tensor.numpy()
            for row, i in enumerate(indices):
                n = lengths[i]
                if key == "logits":
                    value[i] = tensor[row]
                elif key.startswith("hidden_states"):
                    value[starts[i] : starts[i + 1]] = tensor[row, :n]
                else:
                    flat = tensor[row, :, :n, :n].transpose(1, 2, 0).reshape(n * n, -1)
                    value[square_starts[i] : square_starts[i + 1]] = flat
    return values


def _pick(outputs, output, index):
    return outputs[output] if index is None else outputs[output][index]
