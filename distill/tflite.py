"""A classifier as one .tflite file with all that a phone needs."""

import contextlib
import json
import pathlib
import tempfile

import keras
import numpy as np
import tensorflow as tf
from absl import logging
from keras import ops

from distill.metadata import (
    LABELS_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    TensorDescription,
    add_metadata,
    input_names,
    text_classifier_metadata,
)
from tfnlp.errors import InputError
from tfnlp.files import replaced_when_whole
from tfnlp.models import check_vocabulary

QUANTIZATIONS = ("float32", "float16", "int8")

INPUTS = {
    "ids": "Token ids, [CLS] first and [SEP] last.",
    "mask": "1 at real tokens, 0 at padding.",
    "segment_ids": "0 for the first text, 1 for the second.",
}


def export_tflite(
    model, path, tokenizer, labels, quantization="int8", max_length=None, name="text classifier"
):
    """Writes a text classifier as a .tflite file.

    The file takes `ids`, `mask` and `segment_ids`, (1, L) int32 with any L, and gives the
    probabilities, (1, C) float32. It holds the vocabulary, the labels and the tokenizer's
    settings as TFLite metadata, so that `distill.runtime` and MediaPipe's TextClassifier
    take raw text, and no operation outside TFLite's own. An input longer than `max_length`
    is cut inside the model, its last id, [SEP], kept.

    Args:
        model: a classifier from `tfnlp.models`.
        path: of the file.
        tokenizer: the model's `WordPieceTokenizer`.
        labels: the class names in order of their ids.
        quantization: "float32"; "float16" weights; or "int8", weights in 8 bits and
            activations quantised as they come (dynamic range).
        max_length: the most ids read; the model's positions where None.
        name: of the model, in the metadata.

    Returns:
        Sentences on what MediaPipe's tokenizer does otherwise than this one, see
        `mediapipe_differences`; each is logged as a warning too.

    Raises:
        InputError: for an unknown quantization, a vocabulary or labels that are not the
            model's, a `max_length` above the model's, or a file that cannot be written.
    """
    if quantization not in QUANTIZATIONS:
        raise InputError(
            f"--quantization={quantization} is unknown; use one of {', '.join(QUANTIZATIONS)}."
        )
    embeddings = model.get_layer("embeddings")
    max_length = max_length or embeddings.max_length
    if not 3 <= max_length <= embeddings.max_length:
        raise InputError(
            f"--max_length={max_length} must lie between 3 and the model's "
            f"{embeddings.max_length} positions."
        )
    check_vocabulary(tokenizer, model)
    classes = model.output["logits"].shape[-1]
    if len(labels) != classes:
        raise InputError(f"There are {len(labels)} labels, but the model has {classes} classes.")
    for label in labels:
        if "\n" in str(label):
            raise InputError(f"Label {label!r} holds a line break, which metadata cannot hold.")
    content = _convert(model, quantization, max_length)
    metadata = text_classifier_metadata(
        name,
        f"Classifies a text as one of: {', '.join(map(str, labels))}. Made with tfnlp.",
        [TensorDescription(i, INPUTS[i]) for i in input_names(content)],
        TensorDescription("probability", "The probability of each class."),
    )
    settings = tokenizer.settings() | {"model_max_length": max_length}
    files = {
        VOCABULARY_FILE: "\n".join(tokenizer.vocabulary),
        LABELS_FILE: "\n".join(map(str, labels)),
        TOKENIZER_FILE: json.dumps(settings),
    }
    content = add_metadata(content, metadata, files)
    with replaced_when_whole(path) as temporary:
        pathlib.Path(temporary).write_bytes(content)
    differences = mediapipe_differences(tokenizer)
    for sentence in differences:
        logging.warning("%s", sentence)
    return differences


def mediapipe_differences(tokenizer):
    """What MediaPipe's BERT tokenizer, and so a phone, does otherwise: a list of sentences.

    MediaPipe lowercases A-Z, splits at white space, punctuation and CJK ideographs, and
    never strips accents (its `bert_tokenizer.cc` and `bert_preprocessor_calculator.cc`).
    """
    found = []
    strips = tokenizer.strip_accents
    if strips or (strips is None and tokenizer.lowercase):
        found.append(
            "The tokenizer strips accents and MediaPipe does not: texts with accents, and all "
            "Korean texts, get other ids there; train Korean vocabularies with "
            "strip_accents=False."
        )
    if not tokenizer.lowercase:
        found.append(
            "The tokenizer keeps capitals and MediaPipe lowercases A-Z: texts with capitals "
            "get other ids there."
        )
    if not tokenizer.split_cjk:
        found.append(
            "The tokenizer does not split CJK ideographs and MediaPipe does: texts with them "
            "get other ids there."
        )
    return found


def _convert(model, quantization, max_length):
    forward = (
        _forward_of_scaled_rows(model, max_length) if quantization == "int8" else _forward(model)
    )

    def classify(ids, mask, segment_ids):
        inputs = {"token_ids": ids, "padding_mask": mask, "segment_ids": segment_ids}
        logits = forward({key: _cut(x, max_length) for key, x in inputs.items()})
        return {"probability": ops.softmax(logits, axis=-1)}

    signature = [tf.TensorSpec((1, None), "int32", name=i) for i in INPUTS]
    with tempfile.TemporaryDirectory() as folder, _quiet():
        archive = keras.export.ExportArchive()
        archive.track(model)
        archive.add_endpoint("classify", classify, input_signature=signature)
        archive.write_out(folder, verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=["classify"])
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        if quantization != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantization == "float16":
            converter.target_spec.supported_types = [tf.float16]
        return converter.convert()


def _forward(model):
    return lambda inputs: model(inputs, training=False)["logits"]


def _forward_of_scaled_rows(model, max_length):
    """The model's logits from embedding tables whose every row fills the 8-bit range.

    TFLite has one scale for a whole table, which a few large rows would set for all. So each
    row is divided by its largest value, and multiplied by it again after the lookup.
    """
    layer = model.get_layer("embeddings")
    # The model from the embeddings' output on.
    rest = keras.Model(
        [layer.output, model.input["padding_mask"]],
        model.output["logits"],
        name="rest",  # a name of its own, not a counted one, so that files are the same bytes
    )

    token = _scaled_rows(layer.token_table)
    position = _scaled_rows(layer.position_table[:max_length])  # the rest is never read
    segment = _scaled_rows(layer.segment_table) if layer.num_segments else None

    def lookup(table, ids):
        rows, largest = table
        return tf.gather(rows, ids) * tf.gather(largest, ids)[..., None]

    def forward(inputs):
        ids = inputs["token_ids"]
        x = lookup(token, ids) + lookup(position, tf.range(tf.shape(ids)[1]))
        if segment is not None:
            x += lookup(segment, inputs["segment_ids"])
        return rest([layer.norm(x), inputs["padding_mask"]], training=False)

    return forward


def _scaled_rows(table):
    """A table's rows, each divided by its largest absolute value, and those values."""
    table = ops.convert_to_numpy(table)
    largest = np.maximum(np.abs(table).max(axis=1), 1e-12)
    return table / largest[:, None], largest


@contextlib.contextmanager
def _quiet():
    """Without the notices of every variable and file that TensorFlow writes."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)


def _cut(x, max_length):
    """The first `max_length` columns of (1, L), the last of them L's own last: [SEP]."""
    return tf.concat([x[:, :-1][:, : max_length - 1], x[:, -1:]], axis=1)
