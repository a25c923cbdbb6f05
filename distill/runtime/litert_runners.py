"""LiteRT runners of exported .tflite files: text in, answer out.

Needs neither TensorFlow nor Keras.
"""

import contextlib
import pathlib
import threading

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from distill.runtime.associated_files import (
    LABELS_FILE,
    MARIAN_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    read_files,
)
from tfnlp.pipelines.base_runners import Answerer, Chooser, Classifier, Embedder, Scorer, Tagger
from tfnlp.text.marian import MarianTokenizer
from tfnlp.text.text_arguments import as_texts, check_whole
from tfnlp.text.tokenizer import Encoding, Tokenizer
from tfnlp.text.wordpiece import WordPieceTokenizer
from tfnlp.utils.errors import InputError
from tfnlp.utils.native_notices import without_notices
from tfnlp.utils.progress import progress_bar

INPUTS = ("ids", "mask", "segment_ids")
# Number of texts from which a progress bar is shown.
MANY = 1000
# Set after the process' first run, the only one with which LiteRT prints a notice.
_ran = threading.Event()


class TextRunner:
    """Runner of a .tflite file from `distill.export.tflite`, with its tokenizer.

    A text runs with the smallest fixed-length signature that holds it, else with the one of any
    length.

    Threads may share a runner: their texts run one after the other. To run texts in parallel, give
    each thread its own runner, or the interpreter more threads.

    Args:
        path: the file.
        num_threads: threads of the interpreter.
        try_out: whether to run a text at once, so that a file that cannot be run fails here and
            not with its first text. LiteRT prepares its graph with the first text.

    Raises:
        InputError: if the file is missing, is no .tflite, is damaged, lacks its tokenizer, is of
            another kind, or cannot be run.
    """

    kind = None
    also_runs = ()  # other kinds of files that this class can run
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
        # LiteRT's interpreter crashes the process if two threads run it at once.
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
        """Open the file with LiteRT, and return the interpreter."""
        return Interpreter(str(self.path), num_threads=num_threads)

    def outputs_of(self, encodings):
        """Return the `outputs` of each encoding, with a progress bar if there are many."""
        few = len(encodings) < MANY
        return [self.outputs(e) for e in progress_bar(encodings, unit="text", disable=few)]

    def outputs(self, encoding):
        """Run one `tfnlp.text.Encoding`, and return {name: array without batch}.

        Raises:
            InputError: if LiteRT cannot run it.
        """
        ids, segment_ids = encoding.token_ids, encoding.segment_ids
        fitting = [n for n in self._runners if n is None or n >= len(ids)]
        length = fitting[0] if fitting else max(self._runners)
        if not fitting:
            ids, segment_ids = ([*x[: length - 1], x[-1]] for x in (ids, segment_ids))
        # An empty text without special tokens is run as one padding token.
        size = length or max(len(ids), 1)
        inputs = {
            name: np.array([[*x, *[0] * (size - len(x))]], "int32")  # (1, L)
            for name, x in zip(INPUTS, (ids, [1] * len(ids), segment_ids), strict=True)
        }
        end = max(len(ids), 1) if self._by_token else None
        return {name: value[:end] for name, value in self._run(length, inputs).items()}

    def _run(self, length, inputs):
        """Run the signature of a length, and return its outputs without batch.

        Raises:
            InputError: if LiteRT cannot run it.
        """
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
    """Text classification; arguments as in `TextRunner`."""

    def classify_encoding(self, encoding):
        """Classify one `tfnlp.text.Encoding`."""
        return self.classification(self.run(encoding), encoding.truncated)

    def run(self, encoding):
        """Return the probabilities (C,) of one `Encoding`."""
        return self.outputs(encoding)["probability"]


class TokenTagger(Tagger, TextRunner):
    """Token classification of words; arguments as in `TextRunner`."""


class QuestionAnswerer(Answerer, TextRunner):
    """Extractive question answering; arguments as in `TextRunner`."""


class SentenceScorer(Scorer, TextRunner):
    """Regression on a text or a pair; arguments as in `TextRunner`."""

    also_runs = ("chooser",)

    def choose(self, prompt, endings):
        """Return the index of the ending with the highest score.

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
    """Multiple choice among endings; arguments as in `TextRunner`."""

    # Older exports of choosers have this kind.
    also_runs = ("scorer",)


class TextEmbedder(Embedder, TextRunner):
    """Text embedding; arguments as in `TextRunner`."""


# Runner class of each kind of file.
CLASSES = {
    "classifier": TextClassifier,
    "tagger": TokenTagger,
    "answerer": QuestionAnswerer,
    "scorer": SentenceScorer,
    "chooser": EndingChooser,
    "embedder": TextEmbedder,
}
# Runner classes of generation files, in `distill.runtime.text_generation`.
WRITERS = {"generator": "TextGenerator", "translator": "Translator"}
# Kind of files with the tokenizer in the graph, which need TensorFlow Text to run.
STRING_CLASSIFIER = "string classifier"


def load_runner(path, num_threads=1, try_out=True):
    """Load the runner of a file, by its kind.

    Args:
        path: of a .tflite file.
        num_threads, try_out: as in `TextRunner`.

    Returns:
        An instance of one of `CLASSES`, chosen by the file's `kind`.

    Raises:
        InputError: as `TextRunner`.
    """
    kind = check_kind(path, read_files(path)[0], also_runs=CLASSES)
    return CLASSES[kind](path, num_threads, try_out)


def check_kind(path, settings, wanted=None, also_runs=()):
    """Return the kind of a file, a key of `CLASSES` or `WRITERS`, or `STRING_CLASSIFIER`.

    Args:
        path: of the file.
        settings: its settings.
        wanted: the expected kind; any key of `CLASSES` where None.
        also_runs: other kinds to accept.

    Raises:
        InputError: if the file is of another kind.
    """
    kind = settings.get("kind", "classifier")
    names = {key: runner.__name__ for key, runner in CLASSES.items()} | WRITERS
    names = {key: f"distill.runtime.{name}" for key, name in names.items()}
    names[STRING_CLASSIFIER] = "distill.export.text_in_graph.StringClassifier"
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
    """Return {length: signature runner}, the shortest first, None (any length) last."""
    found = {}
    for key in interpreter.get_signature_list():
        runner = interpreter.get_signature_runner(key)
        details = runner.get_input_details()
        length = int(details["ids"]["shape_signature"][1]) if "ids" in details else -1
        found[None if length < 0 else length] = runner
    return dict(sorted(found.items(), key=lambda item: item[0] or float("inf")))


def _a(kind):
    """Return a kind with its indefinite article."""
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def read_tokenizer(path, settings, files):
    """Build the tokenizer of a file from the results of `read_files`.

    Raises:
        InputError: if it cannot be read, or its package is not installed.
    """
    try:
        if VOCABULARY_FILE in files:
            tokens = files[VOCABULARY_FILE].split("\n")
            return WordPieceTokenizer.from_settings(tokens, settings)
        if MARIAN_FILE in files:
            return MarianTokenizer.from_files(files)
        return Tokenizer.from_json(files[TOKENIZER_FILE], settings["pad_token"])
    except ImportError as e:  # Marian's tokenizers need a package that is optional
        raise InputError(
            f"{path}: its tokenizer needs {e.name}, which is not installed; run pip install "
            f"{e.name}."
        ) from None
    except Exception as e:  # the engine raises no narrower type
        raise InputError(f"{path}: its tokenizer cannot be read ({e}); export it again.") from None
