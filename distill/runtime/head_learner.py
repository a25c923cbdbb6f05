"""A classifier that learns new texts and new labels on the device, without TensorFlow.

The file is one of `export_tflite` with `trainable_head`. Its encoder stays; the last layer learns.
"""

import zipfile

import numpy as np

from distill.runtime.litert_backend import LiteRtBackend, inputs_of
from tfnlp.pipelines.pipeline import Classifier
from tfnlp.tasks.classifier_settings import Decision
from tfnlp.tasks.kinds import CLASSIFIER
from tfnlp.text.reading.text_arguments import as_texts
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace, file_hash

# Signatures of the file. They sort after "run", which runtimes take for the first.
FEATURES, PROBABILITY, START, STEP = "text_features", "score_features", "start_head", "train_head"


class HeadLearner(Classifier):
    """Text classification by a file whose last layer learns; see `Classifier`.

    The answer is always a label: the file's threshold for none of them is of what it knew before.

    Args:
        path: the file.
        new_labels: labels beside those of the file, whose weights start from 0.
        keeps_old: whether the labels of the file stay, with their weights; else the new ones are
            the only ones.
        num_threads: threads of the interpreter.

    Attributes:
        labels: in the order of `probabilities`.

    Raises:
        InputError: as `LiteRtBackend`, for a file without these signatures, and for labels that
            are not 2 different ones or more.
    """

    def __init__(self, path, new_labels=(), keeps_old=True, num_threads=1):
        super().__init__(_HeadBackend(path, num_threads, kind=CLASSIFIER))
        self.decision = Decision()
        kept = self.labels if keeps_old else []
        self.labels = [*kept, *map(str, new_labels)]
        if len({*self.labels}) < max(2, len(self.labels)):
            raise InputError(
                f"The labels {', '.join(self.labels)} must be 2 or more, each once; give others."
            )
        start = self.backend.call(START, factor=np.ones(1, "float32"))
        columns = len(kept), len(self.labels) - len(kept)
        self.backend.head = {
            "kernel": np.pad(start["kernel"][:, : columns[0]], ((0, 0), (0, columns[1]))),
            "bias": np.pad(start["bias"][: columns[0]], (0, columns[1])),
        }

    def learn(self, texts, labels, pairs=None, steps=100, learning_rate=1.0):
        """Train the last layer on all texts at once, by gradient descent.

        Args:
            texts: a list of strings.
            labels: the label of each, a list.
            pairs: the second texts, or None.
            steps: number of steps.
            learning_rate: of each step, in units of the file; the loss falls below 4.

        Returns:
            The mean cross-entropy before each step, a list of floats.

        Raises:
            InputError: for a label that is not one of `labels`, or another number than of texts,
                and if the loss grew, in which case the layer stays as it was.
        """
        texts, labels = as_texts(texts, "texts"), [*map(str, labels)]
        if len(texts) != len(labels) or not labels:
            raise InputError(f"{len(texts)} texts have {len(labels)} labels; give one for each.")
        for label in labels:
            if label not in self.labels:
                raise InputError(
                    f"{label!r} is none of the labels {', '.join(self.labels)}; give it in "
                    "`new_labels`."
                )
        self._check_pairs(pairs)
        encodings = self.tokenizer.encode(texts, pairs, max_length=self.max_length)
        batch = {
            "features": np.stack([self.backend.features(encoding) for encoding in encodings]),
            "targets": np.float32([[x == label for x in self.labels] for label in labels]),
            "learning_rate": np.float32([learning_rate]),
        }
        head, losses = self.backend.head, []
        for _ in range(steps):
            head = self.backend.call(STEP, **batch, **head)
            losses.append(float(head.pop("loss")[0]))
        if losses and not losses[-1] <= losses[0] + 1e-3:  # more than rounding
            raise InputError(
                f"The loss grew from {losses[0]:.3g} to {losses[-1]:.3g}; give a learning_rate "
                f"below {learning_rate}."
            )
        self.backend.head = head
        return losses

    def save(self, path):
        """Write the weights of the last layer and the labels to a .npz."""
        with atomic_replace(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, **self.backend.head, labels=self.labels, of=self.backend.digest())

    def restore(self, path):
        """Take the weights and the labels of a .npz of `save`.

        Raises:
            InputError: if it is none, or was saved with another .tflite.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                stored = {name: file[name] for name in ("kernel", "bias", "labels", "of")}
        except (OSError, EOFError, zipfile.BadZipFile, ValueError, KeyError, TypeError) as e:
            raise InputError(f"{path} holds no weights of `HeadLearner.save` ({e}).") from None
        if stored["of"].item() != self.backend.digest():
            raise InputError(
                f"{path} has weights of another file than {self.backend.path}, whose features "
                "differ; let it learn again."
            )
        self.labels = stored["labels"].tolist()
        self.backend.head = {name: stored[name] for name in ("kernel", "bias")}


class _HeadBackend(LiteRtBackend):
    """`LiteRtBackend` whose last layer has the weights `head`, once these are there."""

    head = None

    def run_one(self, encoding):
        if self.head is None:  # the file as it comes
            return super().run_one(encoding)
        scored = self.call(PROBABILITY, features=self.features(encoding)[None], **self.head)
        return {"probability": scored["probability"][0]}

    def features(self, encoding):
        """Return the features (D,) of an `Encoding`."""
        return self.call(FEATURES, **inputs_of(encoding))["features"][0]

    def call(self, signature, **inputs):
        """Return the outputs of a signature."""
        if signature not in self._interpreter.get_signature_list():
            raise InputError(
                f"{self.path} has no layer to train; export it with trainable_head=True."
            )
        return self._run(self._interpreter.get_signature_runner(signature), inputs)

    def digest(self):
        """Return the SHA-256 of the file."""
        return file_hash(self.path)
