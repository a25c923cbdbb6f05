"""LiteRT backend of the pipelines, for exported .tflite files: text in, answer out.

Needs neither TensorFlow nor Keras.
"""

import contextlib
import functools
import pathlib
import threading

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from distill.runtime.associated_files import (
    LABELS_FILE,
    MARIAN_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    check_kind,
    read_files,
)
from tfnlp.pipelines.pipeline import Classifier, pipeline_of
from tfnlp.tasks import kinds
from tfnlp.text.reading.text_arguments import as_texts
from tfnlp.text.tokenizers.marian import MarianTokenizer
from tfnlp.text.tokenizers.tokenizer import Encoding, Tokenizer
from tfnlp.text.tokenizers.wordpiece import WordPieceTokenizer
from tfnlp.utils.errors import InputError
from tfnlp.utils.native_notices import without_notices
from tfnlp.utils.progress import progress_bar
from tfnlp.utils.settings import check_at_least

INPUTS = ("ids", "mask", "segment_ids")
# Number of texts from which a progress bar is shown.
MANY = 1000
# Set after the process' first run, the only one with which LiteRT prints a notice.
_ran = threading.Event()


class LiteRtBackend:
    """.tflite file from `distill.export.tflite`, with its tokenizer, as a pipeline's backend.

    A text runs with the smallest fixed-length signature that holds it, else with the one of any
    length.

    Threads may share a backend: their texts run one after the other. To run texts in parallel,
    give each thread its own, or the interpreter more threads.

    Args:
        path: the file.
        num_threads: threads of the interpreter.
        try_out: whether to run a text at once, so that a file that cannot be run fails here and
            not with its first text. LiteRT prepares its graph with the first text.
        kind: the expected `Kind` of the file; any that a pipeline runs where None.

    Raises:
        InputError: if the file is missing, is no .tflite, is damaged, lacks its tokenizer, is of
            another kind, or cannot be run.
    """

    _trial = Encoding([0], [0])

    def __init__(self, path, num_threads=1, try_out=True, kind=None):
        check_at_least(1, num_threads=num_threads)
        settings, files = read_files(path)
        self.path = pathlib.Path(path)
        self.settings = settings.get("task", {})
        self.kind = check_kind(path, settings, kind)
        self.max_length = settings["model_max_length"]
        self.tokenizer = read_tokenizer(path, settings, files)
        self.labels = files[LABELS_FILE].split("\n") if LABELS_FILE in files else None
        # LiteRT's interpreter crashes the process if two threads run it at once.
        self._lock = threading.Lock()
        with litert_errors(path):
            self._interpreter = self._open(num_threads)
            self._signatures = _signatures(self._interpreter)
        if try_out:
            outputs, labels = self.run_one(self._trial), self.labels or []
            if "probability" in outputs and len(labels) != outputs["probability"].shape[-1]:
                raise InputError(
                    f"{path} holds {len(labels)} labels in {LABELS_FILE}, but its model has "
                    f"{outputs['probability'].shape[-1]} classes; export it again."
                )

    def _open(self, num_threads):
        """Open the file with LiteRT, and return the interpreter."""
        return Interpreter(str(self.path), num_threads=num_threads)

    def run(self, encodings):
        """Return the outputs of each encoding, with a progress bar if there are many."""
        many = len(encodings) >= MANY
        return [
            self.run_one(e) for e in (progress_bar(encodings, unit="text") if many else encodings)
        ]

    def run_one(self, encoding):
        """Run one `tfnlp.text.Encoding`, and return {name: array without batch}.

        Raises:
            InputError: if LiteRT cannot run it.
        """
        ids, segment_ids = encoding.token_ids, encoding.segment_ids
        fitting = [n for n in self._signatures if n is None or n >= len(ids)]
        length = fitting[0] if fitting else max(self._signatures)
        if not fitting:
            ids, segment_ids = ([*x[: length - 1], x[-1]] for x in (ids, segment_ids))
        outputs = self._call(length, inputs_of(Encoding(ids, segment_ids), length))
        if self.kind.by_token:  # those of padding too
            outputs = {name: value[: max(len(ids), 1)] for name, value in outputs.items()}
        return outputs

    def _call(self, length, inputs):
        """Call the signature of a length, and return its outputs without batch."""
        outputs = self._run(self._signatures[length], inputs)
        return {name: value[0] for name, value in outputs.items()}

    def _run(self, signature, inputs):
        """Run a signature's runner."""
        quiet = contextlib.nullcontext() if _ran.is_set() else without_notices()
        with litert_errors(self.path), self._lock, quiet:
            outputs = signature(**inputs)
        _ran.set()
        return outputs


def inputs_of(encoding, length=None):
    """Return the inputs of an `Encoding` for a signature, {name: (1, L) int32}.

    An empty text without special tokens is one padding token. L is that of the text where None.
    """
    ids, segment_ids = encoding.token_ids, encoding.segment_ids
    size = length or max(len(ids), 1)
    rows = zip(INPUTS, (ids, [1] * len(ids), segment_ids), strict=True)
    return {name: np.array([[*x, *[0] * (size - len(x))]], "int32") for name, x in rows}


def load_runner(path, num_threads=1, try_out=True, kind=None):
    """Load the pipeline of a file, by its kind.

    Args:
        path: of a .tflite file.
        num_threads, try_out, kind: as in `LiteRtBackend`.

    Returns:
        A `tfnlp.pipelines.Pipeline`, such as a `Classifier` for a classifier's file.

    Raises:
        InputError: as `LiteRtBackend`.
    """
    return pipeline_of(LiteRtBackend(path, num_threads, try_out, kind))


TextClassifier = functools.partial(load_runner, kind=kinds.CLASSIFIER)
MultiLabelClassifier = functools.partial(load_runner, kind=kinds.MULTI_LABEL_CLASSIFIER)
TokenTagger = functools.partial(load_runner, kind=kinds.TAGGER)
QuestionAnswerer = functools.partial(load_runner, kind=kinds.ANSWERER)
SentenceScorer = functools.partial(load_runner, kind=kinds.SCORER)
EndingChooser = functools.partial(load_runner, kind=kinds.CHOOSER)
TextEmbedder = functools.partial(load_runner, kind=kinds.EMBEDDER)
TokenEmbedder = functools.partial(load_runner, kind=kinds.TOKEN_EMBEDDER)


class _StringBackend(LiteRtBackend):
    """`LiteRtBackend` that runs strings in place of encodings, by TensorFlow Text's operators."""

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
    """Text classification by a file with the tokenizer in its graph; arguments as `LiteRtBackend`.

    Needs `tensorflow_text`.
    """

    kind = kinds.STRING_CLASSIFIER

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


@contextlib.contextmanager
def litert_errors(path):
    """Convert LiteRT's exceptions to an InputError of one sentence."""
    try:
        yield
    except (ValueError, RuntimeError) as e:
        raise InputError(f"{path} cannot be run by LiteRT ({e}); export it again.") from None


def _signatures(interpreter):
    """Return {length: signature runner}, the shortest first, None (any length) last."""
    signatures = {}
    for key in interpreter.get_signature_list():
        if not key.startswith(("run", "serving")):
            continue  # of `distill.runtime.head_learner`
        runner = interpreter.get_signature_runner(key)
        details = runner.get_input_details()
        length = int(details["ids"]["shape_signature"][1]) if "ids" in details else -1
        signatures[None if length < 0 else length] = runner
    return dict(sorted(signatures.items(), key=lambda item: item[0] or float("inf")))


def read_tokenizer(path, settings, files):
    """Build the tokenizer of a file from the results of `read_files`.

    Raises:
        InputError: if it cannot be read.
        ImportError: if the package of a Marian's tokenizers is not installed.
    """
    try:
        if VOCABULARY_FILE in files:
            tokens = files[VOCABULARY_FILE].split("\n")
            return WordPieceTokenizer.from_settings(tokens, settings)
        if MARIAN_FILE in files:
            return MarianTokenizer.from_files(files)
        return Tokenizer.from_json(files[TOKENIZER_FILE], settings["pad_token"])
    except ImportError:
        raise
    except Exception as e:  # the engine raises no narrower type
        raise InputError(f"{path}: its tokenizer cannot be read ({e}); export it again.") from None
