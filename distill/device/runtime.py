"""Runs exported .tflite files with LiteRT: text in, answer out.

Needs neither TensorFlow nor Keras.
"""

import contextlib
import pathlib
import threading

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from distill.device.associated_files import (
    LABELS_FILE,
    MARIAN_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    read_files,
)
from tfnlp.errors import InputError
from tfnlp.notices import without_notices
from tfnlp.progress import progress_bar
from tfnlp.text.marian import MarianTokenizer
from tfnlp.text.runners import Answerer, Chooser, Classifier, Embedder, Scorer, Tagger
from tfnlp.text.texts import as_texts, check_whole
from tfnlp.text.tokenizer import Encoding, Tokenizer
from tfnlp.text.wordpiece import WordPieceTokenizer

INPUTS = ("ids", "mask", "segment_ids")
# From so many texts on, progress is shown.
MANY = 1000
# LiteRT writes a notice with the first text that a process runs, and none after it.
_ran = threading.Event()


class TextRunner:
    """A .tflite file that `distill.device.tflite` wrote, and its tokenizer.

    A text is run by the smallest signature of a fixed length that holds it, else by the one of
    any length.

    Threads may share one: their texts are run one after the other. For texts side by side
    give each thread a runner of its own, or the interpreter more threads.

    Args:
        path: the file.
        num_threads: threads of the interpreter.
        try_out: whether a text is run at once, so that a file that cannot be run is told here and
            not with its first text. LiteRT prepares its graph with the first text.

    Raises:
        InputError: if the file is missing, is no .tflite, is damaged, lacks its tokenizer, is
            of another kind, or cannot be run.
    """

    kind = None
    also_runs = ()  # the other kinds of files that do for this one
    _trial = Encoding([0], [0])

    def __init__(self, path, num_threads=1, try_out=True):
        check_whole(num_threads=num_threads)
        if num_threads < 1:
            raise InputError(f"num_threads={num_threads} must be at least 1.")
        settings, files = read_files(path)
        self.path = pathlib.Path(path)
        self.settings = settings.get("task", {})
        kind = check_kind(path, settings, self.kind, self.also_runs)
        self.max_length = settings["model_max_length"]
        self.tokenizer = read_tokenizer(path, settings, files)
        self.labels = files[LABELS_FILE].split("\n") if LABELS_FILE in files else None
        self._by_token = kind in ("tagger", "answerer")
        # LiteRT's interpreter ends the process where two threads run it at once.
        self._lock = threading.Lock()
        try:
            self._interpreter = self._open(num_threads)
            self._runners = _runners(self._interpreter)
        except (ValueError, RuntimeError) as e:
            raise InputError(f"{path} cannot be run by LiteRT ({e}); export it again.") from None
        if try_out:
            tried = self.outputs(self._trial)
            if "probability" in tried:
                self._check_labels(tried["probability"].shape[-1])

    def _open(self, num_threads):
        """Return LiteRT's interpreter of the file."""
        return Interpreter(str(self.path), num_threads=num_threads)

    def outputs_of(self, encodings):
        """The `outputs` for each of many encodings, with a progress bar where there are many."""
        few = len(encodings) < MANY
        return [self.outputs(e) for e in progress_bar(encodings, unit="text", disable=few)]

    def outputs(self, encoding):
        """The file's outputs for one `tfnlp.text.Encoding`, {name: array without batch}.

        Raises:
            InputError: if LiteRT cannot run it.
        """
        ids, segment_ids = encoding.token_ids, encoding.segment_ids
        fitting = [n for n in self._runners if n is None or n >= len(ids)]
        length = fitting[0] if fitting else max(self._runners)
        if not fitting:
            ids, segment_ids = ([*x[: length - 1], x[-1]] for x in (ids, segment_ids))
        # Of an empty text, where the tokenizer frames none, there is padding alone.
        size = length or max(len(ids), 1)
        inputs = {
            name: np.array([[*x, *[0] * (size - len(x))]], "int32")  # (1, L)
            for name, x in zip(INPUTS, (ids, [1] * len(ids), segment_ids), strict=True)
        }
        end = max(len(ids), 1) if self._by_token else None
        return {name: value[:end] for name, value in self._run(length, inputs).items()}

    def _run(self, length, inputs):
        """Return the outputs, without batch, of the signature of a length."""
        quiet = contextlib.nullcontext() if _ran.is_set() else without_notices()
        try:
            with self._lock, quiet:
                outputs = self._runners[length](**inputs)
        except (ValueError, RuntimeError) as e:
            raise InputError(
                f"{self.path} cannot be run by LiteRT ({e}); export it again."
            ) from None
        _ran.set()
        return {name: value[0] for name, value in outputs.items()}

    def _check_labels(self, classes):
        count = len(self.labels or [])
        if count != classes:
            raise InputError(
                f"{self.path} holds {count} labels in {LABELS_FILE}, but its model has {classes} "
                "classes; export it again."
            )


class TextClassifier(Classifier, TextRunner):
    """A text classifier; arguments as `TextRunner` takes them."""

    def classify_encoding(self, encoding):
        """Classifies one `tfnlp.text.Encoding`."""
        return self.classification(self.run(encoding), encoding.cut)

    def run(self, encoding):
        """The probabilities (C,) of one `Encoding`."""
        return self.outputs(encoding)["probability"]


class TokenTagger(Tagger, TextRunner):
    """A tagger of words; arguments as `TextRunner` takes them."""


class QuestionAnswerer(Answerer, TextRunner):
    """Answers from a text; arguments as `TextRunner` takes them."""


class SentenceScorer(Scorer, TextRunner):
    """A number for a text or a pair; arguments as `TextRunner` takes them."""

    also_runs = ("chooser",)

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


class EndingChooser(Chooser, TextRunner):
    """The best of several endings; arguments as `TextRunner` takes them."""

    # Choosers were exported under this name at first.
    also_runs = ("scorer",)


class TextEmbedder(Embedder, TextRunner):
    """Texts as vectors; arguments as `TextRunner` takes them."""


# The class here that runs each kind of file.
CLASSES = {
    "classifier": TextClassifier,
    "tagger": TokenTagger,
    "answerer": QuestionAnswerer,
    "scorer": SentenceScorer,
    "chooser": EndingChooser,
    "embedder": TextEmbedder,
}
# Those of files that write, in `distill.device.generation`.
WRITERS = {"generator": "TextGenerator", "translator": "Translator"}
# The kind of files that hold their tokenizer as operations, which need TensorFlow Text to run.
STRING_CLASSIFIER = "string classifier"


def load_runner(path, num_threads=1, try_out=True):
    """The runner of a file, of whatever kind it is.

    Args:
        path: of a .tflite file.
        num_threads, try_out: as `TextRunner` takes them.

    Returns:
        One of `CLASSES`, whose name is the file's `kind`.

    Raises:
        InputError: as `TextRunner`.
    """
    kind = check_kind(path, read_files(path)[0], also_runs=CLASSES)
    return CLASSES[kind](path, num_threads, try_out)


def check_kind(path, settings, wanted=None, also_runs=()):
    """What a file does: one of `CLASSES` or `WRITERS`.

    Args:
        path: of the file.
        settings: its settings.
        wanted: what it ought to do; anything that a `TextRunner` does where None.
        also_runs: what else will do.

    Raises:
        InputError: for another kind.
    """
    kind = settings.get("kind", "classifier")
    names = {key: runner.__name__ for key, runner in CLASSES.items()} | WRITERS
    names = {key: f"distill.runtime.{name}" for key, name in names.items()}
    names[STRING_CLASSIFIER] = "distill.device.text_in_graph.StringClassifier"
    if kind not in names:
        raise InputError(
            f"{path} is a file of the kind {kind!r}, which this version does not run; known are "
            f"{', '.join(names)}."
        )
    if kind not in ((wanted,) if wanted else CLASSES) and kind not in also_runs:
        what = f", not {_a(wanted)}" if wanted else ", which writes texts"
        if kind == STRING_CLASSIFIER and not wanted:
            what = ", which takes strings"
        raise InputError(f"{path} is {_a(kind)}{what}; use {names[kind]}.")
    return kind


def _runners(interpreter):
    """{length: what runs texts of up to so many ids}, the shortest first, None (any) last."""
    found = {}
    for key in interpreter.get_signature_list():
        runner = interpreter.get_signature_runner(key)
        details = runner.get_input_details()
        length = int(details["ids"]["shape_signature"][1]) if "ids" in details else -1
        found[None if length < 0 else length] = runner
    return dict(sorted(found.items(), key=lambda item: item[0] or float("inf")))


def _a(kind):
    """The name of a kind with its article."""
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def read_tokenizer(path, settings, files):
    """The tokenizer of a file, of what `read_files` gives.

    Raises:
        InputError: if it cannot be read.
    """
    try:
        if VOCABULARY_FILE in files:
            tokens = files[VOCABULARY_FILE].split("\n")
            return WordPieceTokenizer.from_settings(tokens, settings)
        if MARIAN_FILE in files:
            return MarianTokenizer.from_files(files)
        return Tokenizer.from_json(files[TOKENIZER_FILE], settings["pad_token"])
    except ImportError as e:  # a Marian's pair is read by a package that little else needs
        raise InputError(
            f"{path}: its tokenizer needs {e.name}, which is not installed; run pip install "
            f"{e.name}."
        ) from None
    except Exception as e:  # the engine raises no narrower one
        raise InputError(f"{path}: its tokenizer cannot be read ({e}); export it again.") from None
