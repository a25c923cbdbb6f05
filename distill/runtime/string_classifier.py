"""Text classifiers whose file holds the tokenizer in its graph: a string in, probabilities out.

Their graph has three operators of TensorFlow Text, which `tensorflow_text` provides in Python.
"""

import numpy as np

from distill.runtime.litert_backend import LiteRtBackend
from tfnlp.pipelines.pipeline import Classifier
from tfnlp.text.text_arguments import as_texts
from tfnlp.utils.errors import InputError


class _StringBackend(LiteRtBackend):
    """`LiteRtBackend` that runs strings in place of encodings."""

    _trial = ""

    def _open(self, num_threads):
        from ai_edge_litert.interpreter import InterpreterWithCustomOps
        from tensorflow_text.core.pybinds import tflite_registrar

        return InterpreterWithCustomOps(
            custom_op_registerers=tflite_registrar.SELECT_TFTEXT_OPS,
            model_path=str(self.path),
            num_threads=num_threads,
        )

    def run_one(self, encoding):
        return self._call(None, {"text": np.array([encoding.encode()], object)})


class StringClassifier(Classifier):
    """Text classification of strings; arguments as in `LiteRtBackend`."""

    kind = "string classifier"

    def __init__(self, path, num_threads=1, try_out=True):
        super().__init__(_StringBackend(path, num_threads, try_out, self.kind))

    def classify(self, texts, pairs=None):
        """Classify texts, as `Classifier.classify`.

        Raises:
            InputError: if there are `pairs`, which such a file does not take.
        """
        if pairs is not None:
            raise InputError(
                f"{self.backend.path} takes one string, not pairs; leave `pairs` out, or export "
                "it without tokenizer_in_graph=True."
            )
        texts = as_texts(texts)
        encodings = self.tokenizer.encode(texts, max_length=self.max_length)
        return self._decode(self.backend.run(texts), encodings.truncated)
