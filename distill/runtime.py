"""Runs an exported .tflite file with LiteRT: text in, labelled probabilities out.

Needs neither TensorFlow nor Keras.
"""

import dataclasses
import json
import pathlib
import zipfile

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from distill.metadata import LABELS_FILE, TOKENIZER_FILE, VOCABULARY_FILE
from tfnlp.errors import InputError
from tfnlp.text.wordpiece import WordPieceTokenizer


@dataclasses.dataclass(frozen=True)
class Classification:
    """What a classifier says of one text.

    Args:
        label: the most probable class.
        probabilities: {label: probability}, in the model's order.
        cut: whether the text was longer than the model reads, and its end ignored.
    """

    label: str
    probabilities: dict
    cut: bool


class TextClassifier:
    """A text classifier from a .tflite file that `distill.tflite` wrote.

    Args:
        path: the file.
        num_threads: threads of the interpreter.

    Raises:
        InputError: if the file is missing, is no .tflite, or lacks vocabulary and labels.
    """

    def __init__(self, path, num_threads=1):
        path = pathlib.Path(path)
        files = _read_files(path)
        settings = json.loads(files[TOKENIZER_FILE])
        self.max_length = settings["model_max_length"]
        self.labels = files[LABELS_FILE].split("\n")
        self.tokenizer = WordPieceTokenizer.from_settings(
            files[VOCABULARY_FILE].split("\n"), settings
        )
        try:
            self._interpreter = Interpreter(str(path), num_threads=num_threads)
        except (ValueError, RuntimeError) as e:
            raise InputError(f"{path} cannot be run by LiteRT ({e}); export it again.") from None
        self._runner = self._interpreter.get_signature_runner()

    def classify(self, texts, pairs=None):
        """Classifies texts, or pairs of texts.

        Args:
            texts: a list of strings.
            pairs: the second texts, one for each, or None.

        Returns:
            A list of `Classification`.
        """
        encodings = self.tokenizer.encode(texts, pairs, max_length=self.max_length)
        return [self.classify_encoding(encoding) for encoding in encodings]

    def classify_encoding(self, encoding):
        """Classifies one `tfnlp.text.Encoding`."""
        probabilities = self.run(encoding)
        return Classification(
            self.labels[int(np.argmax(probabilities))],
            {label: float(p) for label, p in zip(self.labels, probabilities, strict=True)},
            encoding.cut,
        )

    def run(self, encoding):
        """The probabilities (C,) of one `Encoding`."""
        ids = np.array([encoding.token_ids], "int32")  # (1, L)
        outputs = self._runner(
            ids=ids,
            mask=np.ones_like(ids),
            segment_ids=np.array([encoding.segment_ids], "int32"),
        )
        return outputs["probability"][0]


def _read_files(path):
    if not path.exists():
        raise InputError(f"{path} does not exist; check the path.")
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                name: archive.read(name).decode("utf-8")
                for name in (VOCABULARY_FILE, LABELS_FILE, TOKENIZER_FILE)
            }
    except (zipfile.BadZipFile, KeyError, OSError):
        raise InputError(
            f"{path} is no .tflite with vocabulary and labels inside, or is cut short; export "
            "it with recipes.export_tflite."
        ) from None
