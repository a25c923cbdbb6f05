"""Export of a model that reads texts to one .tflite file with everything that a phone needs."""

import dataclasses
import pathlib

from absl import logging

from distill.compression.file_quantization import (
    calibrated,
    check_calibration,
    check_quantization,
    in_columns,
)
from distill.export.conversion import check_computes_in_float32, convert_text_model
from distill.export.fidelity import compare, describe, float_reference, warn
from distill.export.length_signatures import check_lengths
from distill.export.mediapipe import (
    ONE_SIGNATURE,
    frames_as_mediapipe,
    mediapipe_differences,
    sentencepiece_model,
)
from distill.export.metadata import complete_file
from distill.export.options import Export
from distill.export.text_in_graph import check_text_input, text_input
from distill.runtime import StringClassifier, load_runner
from distill.runtime.associated_files import (
    LABELS_FILE,
    SENTENCEPIECE_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
)
from tfnlp.models import check_vocabulary
from tfnlp.pipelines.keras_backend import POOLINGS, model_kind
from tfnlp.quantization.fake_quantization import converting, in_float
from tfnlp.text import WordPieceTokenizer
from tfnlp.text.tokenizer import Tokenizer
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import replaced_when_whole

INPUTS = {
    "ids": "Token ids, [CLS] first and [SEP] last.",
    "mask": "1 at real tokens, 0 at padding.",
    "segment_ids": "0 for the first text, 1 for the second.",
    "text": "The text, one string.",
}
# Outputs of each kind of file, with their descriptions.
OUTPUTS = {
    "classifier": {"probability": "The probability of each class."},
    "scorer": {"score": "The score of the text or pair."},
    "chooser": {"score": "The score of the second text as the end of the first."},
    "tagger": {"probability": "The probability of each tag at each token."},
    "answerer": {
        "start_logits": "The logit of an answer that starts at each token.",
        "end_logits": "The logit of an answer that ends at each token.",
    },
    "embedder": {"embedding": "The text as a vector of length 1."},
}
# Heads that can be exported, and kinds of files with class names.
HEADS = ("classifier", "tagger", "answerer", "chooser")
LABELLED = ("classifier", "tagger")
# Kinds for which MediaPipe has a task.
IN_MEDIAPIPE = ("classifier", "embedder")
# Kinds that always read pairs of texts.
OF_PAIRS = ("answerer", "chooser")
ONE_TEXT = (
    "The model was trained on pairs of texts, and MediaPipe takes single texts, so it cannot run "
    "the file; use distill.runtime, or ids (docs/mobile.md)."
)


def export_tflite(model, path, tokenizer, labels=None, options=None, task_settings=None):
    """Write a model as a .tflite file.

    The file takes `ids`, `mask` and `segment_ids`, (1, L) int32 with any L. Its outputs, float32:

    - classifier: `probability`, (1, C);
    - regression, or a chooser, which runs each ending separately: `score`, (1, 1);
    - tagger: `probability`, (1, L, C);
    - answerer: `start_logits` and `end_logits`, (1, L);
    - with a pooling: `embedding`, (1, D), a vector of length 1.

    The file holds the tokenizer, the labels and the settings as TFLite metadata. Thus
    `distill.runtime` takes raw text, and so do MediaPipe's TextClassifier and TextEmbedder if they
    support the tokenizer, see `mediapipe_differences`. All operations are TFLite's own. The model
    truncates an input longer than `max_length`, and keeps the last id that is not padding, [SEP].
    A call takes one text, by the signature "run".

    Args:
        model: from `tfnlp.models`, with the head "classifier", "tagger", "answerer" or
            "chooser".
        path: of the file.
        tokenizer: the model's.
        labels: the class names in order of their ids, for a classifier or tagger.
        options: `Export`; its defaults where None. If it has `check_inputs`, the comparison is
            logged, and stored in the metadata and, as `check`, in the settings.
        task_settings: a dict of how the model was trained to read texts, which the runtime
            follows, from `tfnlp.checkpoints.read_task_settings` on its folder.

    Returns:
        Sentences on the differences of MediaPipe, see `mediapipe_differences`. Warnings name or
        count them.

    Raises:
        InputError: if the quantization is unknown, there are too few texts to calibrate with,
            the model cannot be exported or computes in half precision, the tokenizer or labels
            are not the model's, `max_length` is above the model's, fixed lengths do not fit, the
            threshold is no probability, or the file cannot be written.
    """
    options = options or Export()
    file = _TextFile(model, tokenizer, labels, options, task_settings)
    content = file.convert()
    with replaced_when_whole(path) as temporary:
        temporary = pathlib.Path(temporary)
        temporary.write_bytes(file.complete(content))
        if options.check_inputs is not None and options.check_inputs.texts:
            check = file.compare(temporary)
            temporary.write_bytes(file.complete(content, check))
    return file.differences()


class _TextFile:
    """.tflite file to be written; arguments as in `export_tflite`."""

    def __init__(self, model, tokenizer, labels, options, task_settings):
        quantization = check_quantization(options.quantization)
        check_calibration(quantization, model, options.calibration_text)
        self.kind = kind_of(model, options.pooling)
        max_length = _max_length(model, options.max_length)
        self.lengths = check_lengths(options.fixed_lengths, options.fixed_only, max_length)
        if options.fixed_only:
            max_length = max(self.lengths)
        _check_threshold(options.score_threshold, self.kind)
        check_tokenizer(tokenizer, model)
        check_computes_in_float32(model)
        self.labels = [str(label) for label in labels or []] if self.kind in LABELLED else []
        if self.kind in LABELLED:
            check_labels(self.labels, model.output["logits"].shape[-1])
        self.model = model
        self.tokenizer = tokenizer
        self.task_settings = _task_settings(self.kind, task_settings)
        self.pairs = self.task_settings.get("pairs", False)
        self.options = dataclasses.replace(
            options, quantization=quantization, max_length=max_length
        )
        if options.tokenizer_in_graph:
            check_text_input(self.kind, tokenizer, options.fixed_lengths, self.pairs)

    def convert(self):
        """Return the bytes of the model as a .tflite without metadata."""
        options, source, tokenize = self.options, self.model, None
        if options.tokenizer_in_graph:
            tokenize = text_input(self.tokenizer, options.max_length)
        if options.calibration_text is not None:
            texts = in_columns(options.calibration_text)
            encodings = self.tokenizer.encode(*texts, max_length=options.max_length)
            source = calibrated(self.model, encodings, self.tokenizer.pad_token_id)
        static = options.quantization == "static_int8"
        with converting(source) if static else in_float(self.model):
            return convert_text_model(source, self.kind, options, self.lengths, tokenize)

    def complete(self, content, check=None):
        """Return the bytes of the file, with metadata and associated files.

        Args:
            content: the bytes of the .tflite without metadata.
            check: figures of `compare`, or None.
        """
        settings = self.tokenizer.settings() | {
            "model_max_length": self.options.max_length,
            "kind": StringClassifier.kind if self.options.tokenizer_in_graph else self.kind,
        }
        if self.task_settings:
            settings["task"] = self.task_settings
        description = _description(self.kind, self.labels, self.pairs)
        if check:
            settings["check"] = check
            description += f" {describe(self.kind, check)}"
        files = _associated_files(self.kind, self.tokenizer, self.labels)
        descriptions = INPUTS | OUTPUTS[self.kind]
        return complete_file(
            content, self.options, description, descriptions, settings=settings, files=files
        )

    def compare(self, path):
        """Compare the file at `path` with the model in float32, log and return the figures."""
        load = StringClassifier if self.options.tokenizer_in_graph else load_runner
        with float_reference(
            self.model,
            self.tokenizer,
            labels=self.labels or None,
            settings=self.task_settings | {"max_length": self.options.max_length},
            pooling=self.options.pooling,
        ) as reference:
            check = compare(load(path, num_threads=2), reference, self.options.check_inputs)
        logging.info("%s", describe(self.kind, check))
        warn(self.kind, check, self.options.quantization)
        return check

    def differences(self):
        """Return sentences on the differences of MediaPipe; log those of characters in a line."""
        if self.kind not in IN_MEDIAPIPE or self.options.tokenizer_in_graph:
            return []
        no_task = [ONE_TEXT] if self.pairs else []
        no_task += [ONE_SIGNATURE] if len(self.lengths) > 1 else []
        differences = mediapipe_differences(self.tokenizer)
        for sentence in [*no_task, *(differences if len(differences) == 1 else [])]:
            logging.warning("%s", sentence)
        if len(differences) > 1:
            logging.warning(
                "MediaPipe tokenizes texts with some characters otherwise, in %d ways, which the "
                "model card lists; distill.runtime has no such differences.",
                len(differences),
            )
        return no_task + differences


def _associated_files(kind, tokenizer, labels):
    """Return {name: content} of the labels and the tokenizer, to be stored in a file."""
    files = {LABELS_FILE: "\n".join(labels)} if labels else {}
    if isinstance(tokenizer, WordPieceTokenizer):
        return files | {VOCABULARY_FILE: "\n".join(tokenizer.vocabulary)}
    files[TOKENIZER_FILE] = tokenizer.to_json()
    if kind in IN_MEDIAPIPE and frames_as_mediapipe(tokenizer):
        files[SENTENCEPIECE_FILE] = sentencepiece_model(tokenizer)
    return files


def _max_length(model, max_length):
    """Return the most ids of an input.

    Raises:
        InputError: if it is above the model's positions, or leaves no room for a token.
    """
    positions = model.text_config.max_length or 512
    max_length = positions if max_length is None else max_length
    if not 3 <= max_length <= positions:
        raise InputError(
            f"max_length={max_length} must lie between 3 and the model's {positions} positions."
        )
    return max_length


def check_tokenizer(tokenizer, model):
    """Raise an InputError unless `tokenizer` is a `Tokenizer` that fits the model's vocabulary."""
    if not isinstance(tokenizer, Tokenizer):
        raise InputError(
            f"tokenizer={tokenizer!r} is no tokenizer; give the model's, which "
            "tfnlp.text.load_tokenizer reads, so that the file takes texts."
        )
    check_vocabulary(tokenizer, model)


def kind_of(model, pooling=None):
    """Return the kind of file that a model is exported to, a key of `OUTPUTS`.

    Raises:
        InputError: if the model cannot be exported, or the pooling is unknown.
    """
    if getattr(model, "text_config", None) is None:
        raise InputError(
            "export_tflite needs a model of tfnlp.models.build_model or "
            f"tfnlp.checkpoints.load_model, with one of the heads {', '.join(HEADS)}; this "
            f"{type(model).__name__} has no text_config, so build one and set its weights, or "
            "convert yours by tf.lite.TFLiteConverter.from_keras_model."
        )
    if pooling is not None:
        if pooling not in POOLINGS:
            raise InputError(f"pooling={pooling!r} is unknown; use one of {', '.join(POOLINGS)}.")
        if model.head in ("chooser", "permutation_lm"):
            raise InputError(
                f"pooling={pooling!r} needs the states of one text, which the head "
                f"{model.head!r} has not; load the model without a head."
            )
    elif model.head not in HEADS:
        raise InputError(
            f"A model with the head {model.head!r} has no export; give `pooling`, such as "
            f"pooling={POOLINGS[0]!r}, for a file that gives texts as vectors, or a model with "
            f"one of the heads {', '.join(HEADS)}; export_generator and export_translator export "
            "models that generate."
        )
    surplus = set(model.input) - {"token_ids", "segment_ids", "padding_mask"}
    if surplus:
        raise InputError(
            f"{model.name} has the inputs {', '.join(sorted(surplus))} too, which an exported "
            "file has not; build it without memory=True."
        )
    return model_kind(model, pooling)


def check_labels(labels, classes):
    """Raise an InputError unless there is one label a class; warn of bare numbers."""
    if len(labels) != classes:
        raise InputError(
            f"There are {len(labels)} labels, but the model has {classes} classes; give "
            "labels=[...], their names in order of their ids."
        )
    for label in labels:
        if "\n" in label:
            raise InputError(f"Label {label!r} holds a line break, which metadata cannot hold.")
        if labels.count(label) > 1:
            raise InputError(f"Label {label!r} is there twice; every class needs its own name.")
    if labels and all(label.isdecimal() for label in labels):
        logging.warning(
            "The labels %s are bare numbers, and phones will show them; give `labels`, their "
            "names in order of their ids.",
            ", ".join(labels),
        )


def _check_threshold(score_threshold, kind):
    if score_threshold is None:
        return
    if kind != "classifier":
        raise InputError(
            f"score_threshold={score_threshold} is for classes, which {kind} files do not have."
        )
    if not 0 <= score_threshold <= 1:
        raise InputError(f"score_threshold={score_threshold} must lie between 0 and 1.")


def _task_settings(kind, settings):
    """Return a file's training settings, with `pairs` if it takes pairs of texts."""
    settings = dict(settings or {})
    if kind in OF_PAIRS:
        settings["pairs"] = True
    elif kind == "embedder":  # embeds single texts, whatever the head was trained on
        settings.pop("pairs", None)
    return settings


def _description(kind, labels, pairs):
    text = "a pair of texts" if pairs else "a text"
    descriptions = {
        "classifier": f"Classifies {text} as one of: {', '.join(labels)}.",
        "scorer": f"Gives {text} a score.",
        "chooser": "Gives an ending of a text a score, the best the highest.",
        "tagger": f"Tags words as one of: {', '.join(labels)}.",
        "answerer": "Finds the answer to a question in a text.",
        "embedder": "Embeds a text as a vector; similar texts have a large dot product.",
    }
    return f"{descriptions[kind]} Made with tfnlp."
