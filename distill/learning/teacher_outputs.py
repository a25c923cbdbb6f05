"""A teacher's outputs, computed once and kept, in memory or on disk."""

import dataclasses
import pathlib

import keras
import numpy as np
import tensorflow as tf

from distill.learning.losses import pick_output
from tfnlp.errors import InputError
from tfnlp.files import read_json, write_json
from tfnlp.models import check_lengths
from tfnlp.progress import progress_bar
from tfnlp.text import Encodings
from tfnlp.training.fingerprint import model_fingerprint
from tfnlp.training.predict import TOKEN_OUTPUTS, input_signature


def output_key(output, index):
    """The name of one teacher output in a cache and in a batch."""
    return output if index is None else f"{output}/{index}"


@dataclasses.dataclass
class TeacherOutputs:
    """Outputs of a teacher for every example, without padding, end to end.

    Fits `LengthBatches(targets=...)`.

    Args:
        lengths: (texts,), the tokens of each text.
        values: for each key of `output_key` a flat array: of texts (examples, ...), of tokens
            (tokens, ...), of pairs of tokens (sum of squared lengths, N).
        kinds: for each key "text", "token" or "pair".
        choices: texts of an example, to choose from.
    """

    lengths: np.ndarray
    values: dict
    kinds: dict
    choices: int = 1

    def __post_init__(self):
        self.starts, self.square_starts = _starts(self.lengths)

    def signature(self):
        """The `tf.TensorSpec` of each key in a batch."""
        specs = {}
        for key, value in self.values.items():
            kind, width = self.kinds[key], value.shape[1:]
            shapes = {"text": (None,), "token": (None, None)}
            shape = (None, *width, None, None) if kind == "pair" else (*shapes[kind], *width)
            specs[key] = tf.TensorSpec(shape, "float32")
        return specs

    def batch(self, indices, length):
        """The outputs of some examples, padded with zeros to `length`.

        Returns:
            A dict of float32 arrays: of texts (B, ...), of tokens (B, length, ...), of pairs
            (B, N, length, length); with choices the latter two are of B * choices texts.
        """
        readers = {"text": self._of_texts, "token": self._of_tokens, "pair": self._of_pairs}
        return {
            key: readers[self.kinds[key]](value, np.asarray(indices), length)
            for key, value in self.values.items()
        }

    def _of_texts(self, value, indices, length):
        return value[indices].astype("float32")

    def _of_tokens(self, value, indices, length):
        texts = text_numbers(indices, self.choices)
        batch = np.zeros((len(texts), length, *value.shape[1:]), "float32")
        for row, i in enumerate(texts):
            batch[row, : self.lengths[i]] = value[self.starts[i] : self.starts[i + 1]]
        return batch

    def _of_pairs(self, value, indices, length):
        texts = text_numbers(indices, self.choices)
        batch = np.zeros((len(texts), value.shape[1], length, length), "float32")
        for row, i in enumerate(texts):
            n = self.lengths[i]
            flat = value[self.square_starts[i] : self.square_starts[i + 1]]  # (n * n, N)
            batch[row, :, :n, :n] = flat.reshape(n, n, -1).transpose(2, 0, 1)
        return batch


def text_numbers(examples, choices):
    """The numbers of the texts of some examples, each of which has `choices`."""
    return (examples[:, None] * choices + np.arange(choices)).ravel()


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
        InputError: if a text is longer than the teacher's positions, or the folder holds the
            cache of another teacher or of other examples.
    """
    check_lengths(batches, teacher)
    reads = sorted(set(reads), key=lambda read: (read[0], read[1] or 0))
    encodings = Encodings.of(batches.encodings)
    kinds = {output_key(*r): _kind(r[0], pick_output(teacher.output, *r)) for r in reads}
    outputs = TeacherOutputs(np.diff(encodings.starts), {}, kinds, encodings.choices or 1)
    if folder is None:
        _compute(outputs, teacher, batches, reads, _array)
        return outputs
    folder = pathlib.Path(folder)
    made_from = {
        "teacher": model_fingerprint(teacher),
        "precision": keras.config.dtype_policy().name,
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
                outputs,
                teacher,
                batches,
                reads,
                lambda key, shape: np.lib.format.open_memmap(
                    paths[key],
                    "w+",
                    dtype="float32" if key.endswith("logits") else "float16",
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
        outputs.values = {key: np.load(path, mmap_mode="r") for key, path in paths.items()}
    except (OSError, ValueError) as e:
        raise InputError(f"{folder} is no whole cache ({e}); delete it to make it anew.") from None
    return outputs


def _kind(output, tensor):
    """Whether an output is of each text, each token or each pair of tokens."""
    if output == "attention_scores":
        return "pair"
    return "token" if output in TOKEN_OUTPUTS or len(tensor.shape) == 3 else "text"


def _starts(lengths):
    """Where each example's tokens, and its pairs of tokens, begin."""
    squares = lengths.astype("int64") ** 2
    return np.concatenate([[0], np.cumsum(lengths)]), np.concatenate([[0], np.cumsum(squares)])


def _array(key, shape):
    return np.empty(shape, "float32")


def _compute(outputs, teacher, batches, reads, allocate):
    """Fills the values of `outputs`, in arrays that `allocate(key, shape)` gives."""

    @tf.function(input_signature=[input_signature(teacher)])
    def forward(inputs):
        found = teacher(inputs, training=False)
        return {output_key(*read): pick_output(found, *read) for read in reads}

    lengths, starts, square_starts = outputs.lengths, outputs.starts, outputs.square_starts
    rows = {
        "text": len(batches.encodings),
        "token": int(starts[-1]),
        "pair": int(square_starts[-1]),
    }
    for indices in progress_bar(batches.order(), desc="teacher", unit="batch"):
        texts = text_numbers(indices, outputs.choices)
        for key, tensor in forward(batches.batch(indices)[0]).items():
            kind, tensor = outputs.kinds[key], tensor.numpy()
            if key not in outputs.values:
                # Of pairs (texts, N, L, L), of tokens (texts, L, ...), of texts (examples, ...).
                width = tensor.shape[2:] if kind == "token" else tensor.shape[1:2]
                outputs.values[key] = allocate(key, (rows[kind], *width))
            value = outputs.values[key]
            if kind == "text":
                value[indices] = tensor
                continue
            for row, i in enumerate(texts):
                n = lengths[i]
                if kind == "token":
                    value[starts[i] : starts[i + 1]] = tensor[row, :n]
                else:
                    flat = tensor[row, :, :n, :n].transpose(1, 2, 0).reshape(n * n, -1)
                    value[square_starts[i] : square_starts[i + 1]] = flat
