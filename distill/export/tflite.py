"""Export of a model that reads texts to one .tflite file with everything that a phone needs."""

import dataclasses
import pathlib

import numpy as np
from absl import logging

from distill.compression.calibration import calibrate, check_calibration, in_columns
from distill.compression.file_quantization import check_quantization
from distill.compression.rebuild import rebuild
from distill.export.conversion import check_computes_in_float32, convert_text_model
from distill.export.fidelity import compare, describe, float_reference, warn
from distill.export.head_training import check_trainable_head
from distill.export.length_signatures import check_lengths, check_range
from distill.export.mediapipe import (
    ONE_SIGNATURE,
    ONE_TEXT,
    frames_as_mediapipe,
    mediapipe_differences,
    sentencepiece_model,
)
from distill.export.metadata import complete_file, tokenizer_files
from distill.export.options import Export
from distill.export.text_in_graph import check_text_input, text_input
from distill.runtime import StringClassifier, load_runner
from distill.runtime.associated_files import LABELS_FILE, SENTENCEPIECE_FILE
from tfnlp.checkpoints.sentence_modules import ANY_LENGTH
from tfnlp.configs import VectorHead, family_name
from tfnlp.models import check_vocabulary, num_classes, with_vectors
from tfnlp.pipelines.pipeline import thresholds_of
from tfnlp.quantization.fake_quantization import converting, in_float
from tfnlp.tasks.classifier_settings import Decision
from tfnlp.tasks.kinds import CLASSIFIER, EMBEDDER, TOKEN_EMBEDDER, kind_of
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import atomic_replace

INPUTS = {
    "ids": "Token ids, [CLS] first and [SEP] last.",
    "mask": "1 at real tokens, 0 at padding.",
    "segment_ids": "0 for the first text, 1 for the second.",
    "text": "The text, one string.",
}


def export_tflite(model, path, tokenizer, labels=None, options=None, task_settings=None):
    """Write a model as a .tflite file.

    The file takes `ids`, `mask` and `segment_ids`, (1, L) int32 with any L. Its outputs, float32:

    - classifier: `probability`, (1, C);
    - regression, or a chooser, which runs each ending separately: `score`, (1, 1);
    - tagger: `probability`, (1, L, C);
    - answerer: `start_logits` and `end_logits`, (1, L);
    - embedder, or with a pooling: `embedding`, (1, D), a vector of length 1; with `token_vectors`
      `token_embeddings` (1, L, D) too.

    The file holds the tokenizer, the labels and the settings as TFLite metadata. Thus
    `distill.runtime` takes raw text, and so do MediaPipe's TextClassifier and TextEmbedder if they
    support the tokenizer, see `mediapipe_differences`. All operations are TFLite's own. The model
    truncates an input longer than `max_length`, and keeps the last id that is not padding, [SEP].
    A call takes one text, by the signature "run".

    Args:
        model: from `tfnlp.models`, with a head of `tfnlp.tasks.kinds.TASK_HEADS`.
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
            the model cannot be exported or computes in half precision, the vocabulary or labels
            are not the model's, `max_length` is above the model's, fixed lengths do not fit, the
            threshold is no probability, or the file cannot be written.
    """
    file = _TextFile(model, tokenizer, labels, options or Export(), task_settings)
    content = file.convert()
    with atomic_replace(path) as temporary:
        temporary = pathlib.Path(temporary)
        temporary.write_bytes(file.complete(content))
        if file.options.check_inputs is not None and file.options.check_inputs.texts:
            check = file.compare(temporary)
            temporary.write_bytes(file.complete(content, check))
    return file.differences()


def with_weights_in_table(model):
    """Return static vectors whose table has the weights, so that their file looks up once."""
    weights = np.asarray(model.get_layer("token_weights").token_table)

    def multiply(weight, value):
        return value * weights if weight.path == "embeddings/token_table" else value

    return rebuild(model, dataclasses.replace(model.text_config, weighted=False), multiply)


def longest_input(config):
    """Return the most tokens that a file of a model's config may read."""
    any_length = ANY_LENGTH if family_name(config) == "static" else 512
    return config.max_length or any_length


def kind_of_file(model):
    """Return the `Kind` of the file that a model is exported to.

    Raises:
        InputError: if the model cannot be exported.
    """
    if getattr(model, "text_config", None) is None:
        raise InputError(
            "export_tflite needs a model of tfnlp.models.build_model or "
            f"tfnlp.checkpoints.load_model; this {type(model).__name__} has no text_config, so "
            "build one and set its weights, or give yours to its own `export(path, 'litert')`."
        )
    kind = kind_of(model)
    surplus = sorted(set(model.input) - {"token_ids", "segment_ids", "padding_mask"})
    if surplus:
        raise InputError(
            f"{model.name} has the inputs {', '.join(surplus)} too, which a file has not; give "
            "one that reads no entities and no characters, or build it without memory=True."
        )
    return kind


class _TextFile:
    """.tflite file to be written; arguments as in `export_tflite`."""

    def __init__(self, model, tokenizer, labels, options, task_settings):
        check_quantization(options.quantization)
        check_calibration(options.quantization, model, options.calibration_text)
        if options.pooling is not None:
            model = with_vectors(model, VectorHead((options.pooling,)))
        self.kind = kind_of_file(model)
        if options.token_vectors:
            if self.kind != EMBEDDER:
                raise InputError(
                    f"token_vectors=True needs an embedder, and the model is a {self.kind}."
                )
            self.kind = TOKEN_EMBEDDER
        if getattr(model.text_config, "weighted", False):
            model = with_weights_in_table(model)
        positions = longest_input(model.text_config)
        max_length = positions if options.max_length is None else options.max_length
        check_range(3, positions, max_length=max_length)
        self.lengths = check_lengths(options.fixed_lengths, options.fixed_only, max_length)
        if options.fixed_only:
            max_length = max(self.lengths)
        check_threshold(options.score_threshold, self.kind)
        check_vocabulary(tokenizer, model)
        check_computes_in_float32(model)
        self.labels = [str(label) for label in labels or []] if self.kind.labelled else []
        if self.kind.labelled:
            check_labels(self.labels, num_classes(model))
        self.model, self.tokenizer = model, tokenizer
        # Those of a head are not of the vectors that pooling makes.
        self.task_settings = {} if options.pooling else dict(task_settings or {})
        if "thresholds" in self.task_settings:
            thresholds_of(self.task_settings, self.labels)
        if self.kind == CLASSIFIER:
            least = Decision.from_settings(self.task_settings).threshold
            if least and options.score_threshold is None:
                options = dataclasses.replace(options, score_threshold=least)
        if self.kind.pairs is not None:
            self.task_settings.pop("pairs", None)
            self.task_settings |= {"pairs": True} if self.kind.pairs else {}
        self.pairs = self.task_settings.get("pairs", False)
        self.options = dataclasses.replace(options, max_length=max_length)
        if options.trainable_head:
            check_trainable_head(self.kind, options, model)
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
            source = calibrate(self.model, encodings, self.tokenizer.pad_token_id)
        static = options.quantization == "static_int8"
        with converting(source) if static else in_float(self.model):
            return convert_text_model(source, self.kind, options, self.lengths, tokenize)

    def complete(self, content, check=None):
        """Return the bytes of the file, with metadata and associated files.

        Args:
            content: the bytes of the .tflite without metadata.
            check: figures of `compare`, or None.
        """
        in_graph = self.options.tokenizer_in_graph
        settings = self.tokenizer.settings() | {
            "model_max_length": self.options.max_length,
            "kind": (StringClassifier.kind if in_graph else self.kind).name,
        }
        if self.task_settings:
            settings["task"] = self.task_settings
        text = "a pair of texts" if self.pairs else "a text"
        description = self.kind.description.format(text=text, labels=", ".join(self.labels))
        description += " Made with tfnlp."
        if check:
            settings["check"] = check
            description += f" {describe(self.kind, check)}"
        files = {LABELS_FILE: "\n".join(self.labels)} if self.labels else {}
        files |= tokenizer_files(self.tokenizer)
        if self.kind.in_mediapipe and frames_as_mediapipe(self.tokenizer):
            files[SENTENCEPIECE_FILE] = sentencepiece_model(self.tokenizer)
        texts = description, INPUTS | self.kind.outputs
        return complete_file(content, self.options, *texts, settings=settings, files=files)

    def compare(self, path):
        """Compare the file at `path` with the model in float32, log and return the figures."""
        load = StringClassifier if self.options.tokenizer_in_graph else load_runner
        with float_reference(
            self.model,
            self.tokenizer,
            labels=self.labels or None,
            settings=self.task_settings | {"max_length": self.options.max_length},
        ) as reference:
            check = compare(load(path, num_threads=2), reference, self.options.check_inputs)
        logging.info("%s", describe(self.kind, check))
        warn(self.kind, check, self.options.quantization)
        return check

    def differences(self):
        """Return sentences on the differences of MediaPipe; log those of characters in a line."""
        if not self.kind.in_mediapipe or self.options.tokenizer_in_graph:
            return []
        sentences = [ONE_TEXT] if self.pairs else []
        several = len(self.lengths) > 1 or self.options.trainable_head
        sentences += [ONE_SIGNATURE] if several else []
        differences = mediapipe_differences(self.tokenizer)
        for sentence in [*sentences, *(differences if len(differences) == 1 else [])]:
            logging.warning("%s", sentence)
        if len(differences) > 1:
            logging.warning(
                "MediaPipe reads some characters otherwise, in %d ways that model_card.md lists "
                "(docs/mobile.md); distill.runtime reads them as the model.",
                len(differences),
            )
        return sentences + differences


def check_labels(labels, classes):
    """Raise an InputError unless there is one label a class; warn of bare numbers."""
    if not len(labels) == len(set(labels)) == classes or "\n" in "".join(labels):
        raise InputError(
            f"The labels {labels} do not name {classes} classes; give labels=[...], a name of its "
            "own for each, without line breaks, in order of their ids."
        )
    if all(label.isdecimal() for label in labels):
        logging.warning(
            "The labels %s are bare numbers, and phones will show them; give `labels`, their "
            "names in order of their ids.",
            ", ".join(labels),
        )


def check_threshold(threshold, kind):
    """Raise an InputError for a threshold that is no probability, or not of a classifier."""
    scores_labels = kind.labelled and not kind.by_token
    if threshold is not None and not (scores_labels and 0 <= threshold <= 1):
        raise InputError(
            f"score_threshold={threshold} must be a probability of a classifier, and the file is "
            f"of the kind {kind}."
        )
