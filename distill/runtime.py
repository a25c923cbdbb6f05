"""Runs exported .tflite files with LiteRT: text in, answer out.

Needs neither TensorFlow nor Keras.
"""

import dataclasses
import json
import pathlib
import zipfile

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from distill.metadata import LABELS_FILE, SETTINGS_FILE, TOKENIZER_FILE, VOCABULARY_FILE
from tfnlp.errors import InputError
from tfnlp.text.answers import best_answers
from tfnlp.text.tags import best_tags
from tfnlp.text.tokenizer import Tokenizer
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
    """A .tflite file that `distill.tflite` wrote, and its tokenizer.

    Args:
        path: the file.
        num_threads: threads of the interpreter.

    Raises:
        InputError: if the file is missing, is no .tflite, lacks its tokenizer, or is of
            another kind.
    """

    kind = None

    def __init__(self, path, num_threads=1):
        path = pathlib.Path(path)
        files = _read_files(path)
        settings = json.loads(files[SETTINGS_FILE])
        kind = settings.get("kind", "classifier")
        if self.kind not in (None, kind):
            raise InputError(
                f"{path} is a {kind}, not a {self.kind}; use distill.runtime.{CLASSES[kind]}."
            )
        self.max_length = settings["model_max_length"]
        self.labels = files[LABELS_FILE].split("\n") if LABELS_FILE in files else None
        if VOCABULARY_FILE in files:
            tokens = files[VOCABULARY_FILE].split("\n")
            self.tokenizer = WordPieceTokenizer.from_settings(tokens, settings)
        else:
            self.tokenizer = Tokenizer.from_json(files[TOKENIZER_FILE], settings["pad_token"])
        try:
            self._interpreter = Interpreter(str(path), num_threads=num_threads)
        except (ValueError, RuntimeError) as e:
            raise InputError(f"{path} cannot be run by LiteRT ({e}); export it again.") from None
        self._runner = self._interpreter.get_signature_runner()

    def outputs(self, encoding):
        """The file's outputs for one `tfnlp.text.Encoding`, {name: array without batch}."""
        ids = np.array([encoding.token_ids], "int32")  # (1, L)
        outputs = self._runner(
            ids=ids,
            mask=np.ones_like(ids),
            segment_ids=np.array([encoding.segment_ids], "int32"),
        )
        return {name: value[0] for name, value in outputs.items()}


class TextClassifier(TextRunner):
    """A text classifier; arguments as `TextRunner` takes them."""

    kind = "classifier"

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
        return self.outputs(encoding)["probability"]


class TokenTagger(TextRunner):
    """A tagger of words; arguments as `TextRunner` takes them."""

    kind = "tagger"

    def tag(self, sentences):
        """Tags words; long sentences are read in windows.

        Args:
            sentences: a list of lists of words, or of strings, which are split at white space.

        Returns:
            A list of lists of (word, tag).
        """
        sentences = [s.split() if isinstance(s, str) else list(s) for s in sentences]
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
            the one after its last, and score.
        """
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
            texts: a list of strings.
            pairs: the second texts, one for each, or None.

        Returns:
            A list of floats.
        """
        encodings = self.tokenizer.encode(texts, pairs, max_length=self.max_length)
        return [float(self.outputs(encoding)["score"][0]) for encoding in encodings]

    def choose(self, prompt, endings):
        """The place of the ending, from 0, with the highest score."""
        return int(np.argmax(self.score([prompt] * len(endings), endings)))


def _read_files(path):
    if not path.exists():
        raise InputError(f"{path} does not exist; check the path.")
    try:
        with zipfile.ZipFile(path) as archive:
            files = {name: archive.read(name).decode("utf-8") for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError):
        files = {}
    if SETTINGS_FILE not in files or not files.keys() & {VOCABULARY_FILE, TOKENIZER_FILE}:
        raise InputError(
            f"{path} is no .tflite with a tokenizer inside, or is cut short; export it with "
            "recipes.export_tflite."
        )
    return files
