"""Runs exported .tflite files with LiteRT: text in, answer out.

Needs neither TensorFlow nor Keras.
"""

import dataclasses
import pathlib
import threading

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from distill.device.associated_files import (
    LABELS_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    read_files,
)
from tfnlp.errors import InputError
from tfnlp.text.answers import best_answers
from tfnlp.text.tags import best_tags
from tfnlp.text.texts import as_sentences, as_texts
from tfnlp.text.tokenizer import Encoding, Tokenizer
from tfnlp.text.wordpiece import WordPieceTokenizer

# The class here that runs each kind of file.
CLASSES = {
    "classifier": "TextClassifier",
    "tagger": "TokenTagger",
    "answerer": "QuestionAnswerer",
    "scorer": "SentenceScorer",
}


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


class TextRunner:
    """A .tflite file that `distill.device.tflite` wrote, and its tokenizer.

    Threads may share one: their texts are run one after the other. For texts side by side
    give each thread a runner of its own, or the interpreter more threads.

    Args:
        path: the file.
        num_threads: threads of the interpreter.

    Raises:
        InputError: if the file is missing, is no .tflite, is damaged, lacks its tokenizer, is
            of another kind, or cannot be run.
    """

    kind = None

    def __init__(self, path, num_threads=1):
        self.path = pathlib.Path(path)
        if num_threads < 1:
            raise InputError(f"num_threads={num_threads} must be at least 1.")
        settings, files = read_files(path)
        kind = settings.get("kind", "classifier")
        if self.kind not in (None, kind):
            raise InputError(
                f"{path} is a {kind}, not a {self.kind}; use distill.runtime.{CLASSES[kind]}."
            )
        self.max_length = settings["model_max_length"]
        self.tokenizer = _tokenizer(path, settings, files)
        self.labels = files[LABELS_FILE].split("\n") if LABELS_FILE in files else None
        # LiteRT's interpreter ends the process where two threads run it at once.
        self._lock = threading.Lock()
        try:
            self._interpreter = Interpreter(str(path), num_threads=num_threads)
            self._runner = self._interpreter.get_signature_runner()
        except (ValueError, RuntimeError) as e:
            raise InputError(f"{path} cannot be run by LiteRT ({e}); export it again.") from None
        tried = self.outputs(Encoding([0], [0]))
        if kind in ("classifier", "tagger"):
            self._check_labels(tried["probability"].shape[-1])

    def outputs(self, encoding):
        """The file's outputs for one `tfnlp.text.Encoding`, {name: array without batch}.

        Raises:
            InputError: if LiteRT cannot run it.
        """
        ids = np.array([encoding.token_ids], "int32")  # (1, L)
        inputs = {
            "ids": ids,
            "mask": np.ones_like(ids),
            "segment_ids": np.array([encoding.segment_ids], "int32"),
        }
        if ids.size == 0:  # of an empty text, where the tokenizer frames none: padding
            inputs = {name: np.zeros((1, 1), "int32") for name in inputs}
        try:
            with self._lock:
                outputs = self._runner(**inputs)
        except (ValueError, RuntimeError) as e:
            raise InputError(
                f"{self.path} cannot be run by LiteRT ({e}); export it again."
            ) from None
        return {name: value[0] for name, value in outputs.items()}

    def _check_labels(self, classes):
        count = len(self.labels or [])
        if count != classes:
            raise InputError(
                f"{self.path} holds {count} labels in {LABELS_FILE}, but its model has {classes} "
                "classes; export it again."
            )


class TextClassifier(TextRunner):
    """A text classifier; arguments as `TextRunner` takes them."""

    kind = "classifier"

    def classify(self, texts, pairs=None):
        """Classifies texts, or pairs of texts.

        Args:
            texts: a list of strings; a string is a list of one.
            pairs: the second texts, one for each, or None.

        Returns:
            A list of `Classification`, one for each text.
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
        return self.outputs(encoding)["probability"]


class TokenTagger(TextRunner):
    """A tagger of words; arguments as `TextRunner` takes them."""

    kind = "tagger"

    def tag(self, sentences):
        """Tags words; long sentences are read in windows.

        Args:
            sentences: a list of lists of words, or of strings, which are split at white space;
                a string is a list of one.

        Returns:
            A list of lists of (word, tag), one for each sentence; without words, an empty one.
        """
        sentences = as_sentences(sentences)
        stride = self.max_length // 4
        windows = self.tokenizer.encode_words(sentences, self.max_length, stride)
        rows = [self.outputs(window)["probability"] for window in windows]
        tags = best_tags(sentences, windows, rows, self.labels)
        return [list(zip(*pair, strict=True)) for pair in zip(sentences, tags, strict=True)]


class QuestionAnswerer(TextRunner):
    """Answers from a text; arguments as `TextRunner` takes them."""

    kind = "answerer"

    def answer(self, question, context, null_answers=False, count=1):
        """Finds the answer to a question; long texts are read in windows.

        Args:
            question: a string.
            context: the text to look in.
            null_answers: whether the text may not answer it.
            count: how many answers to give.

        Returns:
            A list of `tfnlp.text.answers.Answer`, best first: text, its first character and
            the one after its last, score, and whether the question was cut.

        Raises:
            InputError: for a `count` below 1.
        """
        if count < 1:
            raise InputError(f"count={count} must be at least 1.")
        stride = self.max_length // 4
        windows = self.tokenizer.encode_windows([question], [context], self.max_length, stride)
        outputs = [self.outputs(window) for window in windows]
        starts = [o["start_logits"] for o in outputs]
        ends = [o["end_logits"] for o in outputs]
        return best_answers(windows, starts, ends, [context], null_answers, count)[0]


class SentenceScorer(TextRunner):
    """A number for a text or a pair; arguments as `TextRunner` takes them."""

    kind = "scorer"

    def score(self, texts, pairs=None):
        """The number of each text, or pair of texts.

        Args:
            texts: a list of strings; a string is a list of one.
            pairs: the second texts, one for each, or None.

        Returns:
            A list of floats, one for each text.
        """
        encodings = self.tokenizer.encode(texts, pairs, max_length=self.max_length)
        return [float(self.outputs(encoding)["score"][0]) for encoding in encodings]

    def choose(self, prompt, endings):
        """The place of the ending, from 0, with the highest score.

        Args:
            prompt: a string.
            endings: a list of strings.

        Raises:
            InputError: if there is no ending.
        """
        (prompt,), endings = as_texts([prompt], "prompt"), as_texts(endings, "endings")
        if not endings:
            raise InputError("endings is empty; give at least one to choose.")
        return int(np.argmax(self.score([prompt] * len(endings), endings)))


def _tokenizer(path, settings, files):
    try:
        if VOCABULARY_FILE in files:
            tokens = files[VOCABULARY_FILE].split("\n")
            return WordPieceTokenizer.from_settings(tokens, settings)
        return Tokenizer.from_json(files[TOKENIZER_FILE], settings["pad_token"])
    except Exception as e:  # the engine raises no narrower one
        raise InputError(f"{path}: its tokenizer cannot be read ({e}); export it again.") from None
