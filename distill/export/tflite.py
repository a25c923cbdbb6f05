"""Export of a model to one .tflite file with everything that a phone needs."""

import contextlib
import pathlib
import tempfile

import keras
import tensorflow as tf
from absl import logging
from keras import ops

from distill.compression.calibration import calibrate, check_calibration, in_columns
from distill.compression.file_quantization import (
    check_quantization,
    configure_converter,
    quantize_file,
)
from distill.export.fidelity import compare, describe, keras_runner, warn
from distill.export.length_signatures import DEFAULT, check_lengths, cut, signatures
from distill.export.mediapipe import (
    ONE_SIGNATURE,
    frames_as_mediapipe,
    mediapipe_differences,
    sentencepiece_model,
)
from distill.export.metadata import (
    TensorDescription,
    add_metadata,
    tensor_names,
    text_model_metadata,
)
from distill.export.text_in_graph import (
    TEXT_INPUT,
    StringClassifier,
    check_text_input,
    text_input,
)
from distill.runtime.associated_files import (
    LABELS_FILE,
    SENTENCEPIECE_FILE,
    SETTINGS_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    add_files,
)
from distill.runtime.litert_runners import CLASSES, STRING_CLASSIFIER
from tfnlp.layers import AdaptiveEmbedding
from tfnlp.models import check_vocabulary, submodel
from tfnlp.quantization.fake_quantization import SMALL, converting, in_float
from tfnlp.text import WordPieceTokenizer
from tfnlp.text.tokenizer import Tokenizer
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import replaced_when_whole

INPUTS = {
    "ids": "Token ids, [CLS] first and [SEP] last.",
    "mask": "1 at real tokens, 0 at padding.",
    "segment_ids": "0 for the first text, 1 for the second.",
}


# Outputs of each kind of file, with their descriptions.
OUTPUTS = {
    "classifier": {"probability": "The probability of each class."},
    "scorer": {"score": "The number of the text or pair."},
    "chooser": {"score": "How well the second text goes on from the first."},
    "tagger": {"probability": "The probability of each tag at each token."},
    "answerer": {
        "start_logits": "How likely an answer starts at each token.",
        "end_logits": "How likely an answer ends at each token.",
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
# Poolings of an embedder.
POOLINGS = ("mean", "first")


def export_tflite(
    model,
    path,
    tokenizer,
    labels=None,
    quantization="int8",
    max_length=None,
    name="text model",
    task_settings=None,
    *,
    fixed_lengths=(),
    fixed_only=False,
    pooling=None,
    credits=None,
    score_threshold=None,
    tokenizer_in_graph=False,
    calibration_text=None,
    check_inputs=None,
):
    """Write a model as a .tflite file.

    The file takes `ids`, `mask` and `segment_ids`, (1, L) int32 with any L. Its outputs, float32:

    - classifier: `probability`, (1, C);
    - regression, or a chooser, which runs each ending separately: `score`, (1, 1);
    - tagger: `probability`, (1, L, C);
    - answerer: `start_logits` and `end_logits`, (1, L);
    - with `pooling`: `embedding`, (1, D), a vector of length 1.

    The file holds the tokenizer, the labels and the settings as TFLite metadata. Thus
    `distill.runtime` takes raw text, and so do MediaPipe's TextClassifier and TextEmbedder if they
    support the tokenizer, see `mediapipe_differences`. All operations are TFLite's own. The model
    truncates an input longer than `max_length`, and keeps the last id that is not padding, [SEP].
    A call takes one text, by the signature "run".

    Each of `fixed_lengths` adds a signature over the same weights, "run_32" for 32, with inputs
    (1, 32), as compilers for GPUs and NPUs need. With `fixed_only` the file has these alone, and
    the longest is "run". MediaPipe takes files with one signature.

    Args:
        model: from `tfnlp.models`, with the head "classifier", "tagger", "answerer" or
            "chooser".
        path: of the file.
        tokenizer: the model's.
        labels: the class names in order of their ids, for a classifier or tagger.
        quantization: "float32"; "float16" weights; "int8", weights in 8 bits and activations
            quantised at run time (dynamic range); "static_int8", products of 8-bit integers
            alone; "int4" and "int4_block32", weights in 4 bits, with a scale for each channel
            or for each 32. See `distill.compression.file_quantization`.
        max_length: the most ids of an input; the model's positions, or 512, where None.
        name: of the model, in the metadata.
        task_settings: a dict of how the model was trained to read texts, which the runtime
            follows, from `tfnlp.checkpoints.read_task_settings` on its folder.
        fixed_lengths: lengths with a signature each, at most `max_length`.
        fixed_only: whether to leave out the signature of any length; the longest fixed one is
            then the maximum length.
        pooling: "mean" of the tokens' states or the "first" one, for a file that outputs text
            embeddings, whatever the head of the model; or None.
        credits: `distill.export.metadata.Credits`, or None.
        score_threshold: probability below which MediaPipe leaves out a class, for a classifier.
        tokenizer_in_graph: whether the file takes `text`, (1,) strings, in place of ids. For a
            classifier with WordPiece; it then needs TensorFlow Text's kernels to run, see
            `distill.export.text_in_graph`.
        calibration_text: strings, or (text, second text) pairs, such as a question and its
            context, from which "static_int8" calibrates the ranges of activations; those of
            quantisation-aware training where None.
        check_inputs: `distill.reports.predictions.Inputs` on which the file is compared with the
            model in float32, see `distill.export.fidelity.compare`. The result is logged, and
            stored in the metadata and, as `check`, in the settings. None for no comparison.

    Returns:
        Sentences on the differences of MediaPipe's tokenizer, see `mediapipe_differences`; each
        is logged as a warning too.

    Raises:
        InputError: if the quantization is unknown, there are too few texts to calibrate with,
            the model cannot be exported or computes in half precision, the tokenizer or labels
            are not the model's, `max_length` is above the model's, fixed lengths do not fit, the
            threshold is no probability, or the file cannot be written.
    """
    check_quantization(quantization)
    check_calibration(quantization, model, calibration_text)
    kind = kind_of(model, pooling)
    positions = model.text_config.max_length or 512
    max_length = positions if max_length is None else max_length
    if not 3 <= max_length <= positions:
        raise InputError(
            f"max_length={max_length} must lie between 3 and the model's {positions} positions."
        )
    lengths = check_lengths(fixed_lengths, fixed_only, max_length)
    if fixed_only:
        max_length = max(lengths)
    _check_threshold(score_threshold, kind)
    if not isinstance(tokenizer, Tokenizer):
        raise InputError(
            f"tokenizer={tokenizer!r} is no tokenizer; give the model's, which "
            "tfnlp.text.load_tokenizer reads, so that the file takes texts."
        )
    check_vocabulary(tokenizer, model)
    check_computes_in_float32(model)
    labels = [str(label) for label in labels or []] if kind in LABELLED else []
    if kind in LABELLED:
        check_labels(labels, model.output["logits"].shape[-1])
    task_settings = _task_settings(kind, task_settings)
    pairs = task_settings.get("pairs", False)
    tokenize = None
    if tokenizer_in_graph:
        check_text_input(kind, tokenizer, fixed_lengths, pairs)
        tokenize = text_input(tokenizer, max_length)
    source = model
    if calibration_text is not None:
        encodings = tokenizer.encode(*in_columns(calibration_text), max_length=max_length)
        source = calibrate(model, encodings, tokenizer.pad_token_id)
    with converting(source) if quantization == "static_int8" else in_float(model):
        content = _convert(source, kind, quantization, max_length, lengths, pooling, tokenize)
    files = _associated_files(kind, tokenizer, labels)
    inputs, outputs = tensor_names(content)
    file_kind = STRING_CLASSIFIER if tokenizer_in_graph else kind
    settings = tokenizer.settings() | {"model_max_length": max_length, "kind": file_kind}
    if task_settings:
        settings["task"] = task_settings

    def with_metadata(check=None):
        """Return the bytes of the file with metadata and associated files."""
        sentences = [_description(kind, labels, pairs), check and describe(kind, check)]
        metadata = text_model_metadata(
            name,
            " ".join(filter(None, sentences)),
            [TensorDescription(i, (INPUTS | TEXT_INPUT)[i]) for i in inputs],
            [TensorDescription(i, OUTPUTS[kind][i]) for i in outputs],
            [SETTINGS_FILE, *files],
            bool(labels),
            credits,
            score_threshold,
        )
        checked = {"check": check} if check else {}
        return add_files(add_metadata(content, metadata), settings | checked, files)

    with replaced_when_whole(path) as temporary:
        file = pathlib.Path(temporary)
        file.write_bytes(with_metadata())
        if check_inputs is not None and check_inputs.texts:
            runs = StringClassifier if tokenizer_in_graph else CLASSES[kind]
            with keras_runner(
                model,
                kind,
                tokenizer,
                labels=labels or None,
                settings=task_settings,
                max_length=max_length,
                pooling=pooling,
            ) as reference:
                check = compare(runs(file, num_threads=2), reference, check_inputs)
            logging.info("%s", describe(kind, check))
            warn(kind, check, quantization)
            file.write_bytes(with_metadata(check))
    if kind not in IN_MEDIAPIPE or tokenizer_in_graph:
        return []
    differences = [ONE_TEXT] if pairs else []
    differences += [ONE_SIGNATURE] if len(lengths) > 1 else []
    differences += mediapipe_differences(tokenizer)
    for sentence in differences:
        logging.warning("%s", sentence)
    return differences


def _associated_files(kind, tokenizer, labels):
    """Return {name: content} of the labels and the tokenizer, to be stored in a file."""
    files = {LABELS_FILE: "\n".join(labels)} if labels else {}
    if isinstance(tokenizer, WordPieceTokenizer):
        return files | {VOCABULARY_FILE: "\n".join(tokenizer.vocabulary)}
    files[TOKENIZER_FILE] = tokenizer.to_json()
    if kind in IN_MEDIAPIPE and frames_as_mediapipe(tokenizer):
        files[SENTENCEPIECE_FILE] = sentencepiece_model(tokenizer)
    return files


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
            f"one of the heads {', '.join(HEADS)}; what writes is exported by "
            "distill.export.generation_export."
        )
    surplus = set(model.input) - {"token_ids", "segment_ids", "padding_mask"}
    if surplus:
        raise InputError(
            f"{model.name} has the inputs {', '.join(sorted(surplus))} too, which an exported "
            "file has not; build it without memory=True."
        )
    if pooling is not None:
        return "embedder"
    if model.head == "classifier" and model.output["logits"].shape[-1] == 1:
        return "scorer"
    return model.head


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
            "The labels %s are bare numbers, which is what a phone will show; give `labels`, "
            "their names in order of their ids.",
            ", ".join(labels),
        )


def _check_threshold(score_threshold, kind):
    if score_threshold is None:
        return
    if kind != "classifier":
        raise InputError(
            f"score_threshold={score_threshold} is of classes, which {kind} files do not give."
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
    what = {
        "classifier": f"Classifies {text} as one of: {', '.join(labels)}.",
        "scorer": f"Gives {text} a number.",
        "chooser": "Gives an ending of a text a number, the best the highest.",
        "tagger": f"Tags words as one of: {', '.join(labels)}.",
        "answerer": "Finds the answer to a question in a text.",
        "embedder": "Gives a text as a vector; those of similar texts have a large product.",
    }
    return f"{what[kind]} Made with tfnlp."


def _convert(model, kind, quantization, max_length, lengths, pooling=None, tokenize=None):
    """Convert a model to a .tflite with a signature for each length, None being any; return bytes.

    With `tokenize`, see `text_input`, it has one signature, which takes strings.
    """
    names = ("start_logits", "end_logits") if kind == "answerer" else ("logits",)
    if kind == "embedder":
        names = ("sequence_output",)
    lookup = LOOKUPS.get(quantization)
    forward = (
        _forward(model, names) if lookup is None else _forward_of(lookup, model, names, max_length)
    )

    def run(ids, mask, segment_ids):
        inputs = {"token_ids": ids, "padding_mask": mask, "segment_ids": segment_ids}
        if ids.shape[1] is None:
            inputs = cut(inputs, max_length)
        outputs = forward(inputs)
        if kind == "embedder":
            return {"embedding": _pool(outputs["sequence_output"], inputs, pooling)}
        if kind == "answerer":
            return outputs
        if kind in ("scorer", "chooser"):
            return {"score": outputs["logits"]}
        return {"probability": ops.softmax(outputs["logits"], axis=-1)}

    endpoints = {
        key: (run, [tf.TensorSpec((1, length), "int32", name=i) for i in INPUTS])
        for key, length in signatures(lengths).items()
    }
    if tokenize is not None:
        endpoints = {
            DEFAULT: (lambda text: run(*tokenize(text)), [tf.TensorSpec((1,), tf.string, "text")])
        }
    return to_tflite(model, endpoints, quantization, tokenize is not None)


def check_computes_in_float32(model):
    """Raise an InputError for a model in half precision, which the converter barely supports."""
    for layer in model._flatten_layers(include_self=False):
        if layer.compute_dtype in ("bfloat16", "float16"):
            raise InputError(
                f"The model computes in {layer.compute_dtype} ({layer.dtype_policy.name}), but "
                "files are made of one that computes in float32; save its folder, load it under "
                'keras.config.set_dtype_policy("float32"), and export that.'
            )


def to_tflite(model, endpoints, quantization, custom_operators=False):
    """Convert functions over a model's weights to the signatures of a .tflite.

    Args:
        model: the owner of the weights.
        endpoints: {name of a signature: (function, list of its `tf.TensorSpec`s)}; the functions
            return dicts of tensors.
        quantization: one of `QUANTIZATIONS`.
        custom_operators: whether operations outside TFLite's own are allowed.

    Returns:
        The bytes of the file.
    """
    with tempfile.TemporaryDirectory() as folder, _quiet():
        archive = keras.export.ExportArchive()
        archive.track(model)
        for key, (function, specs) in endpoints.items():
            archive.add_endpoint(key, function, input_signature=specs)
        archive.write_out(folder, verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[*endpoints])
        # Otherwise signatures of fixed length alone fold the scales of norms into the following
        # weights: they would not share weights with the others, and round worse to 8 bits.
        converter._experimental_disable_fuse_mul_and_fc = True
        converter.allow_custom_ops = custom_operators
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        configure_converter(converter, quantization)
        return quantize_file(converter.convert(), quantization, model)


def _graph(model, names):
    """Return the inputs and outputs of the model for one text, as tensors of its graph.

    For a chooser these lie between the merging and the splitting of its choices.
    """
    if model.head != "chooser":
        return model.input, {name: model.output[name] for name in names}
    inputs = {key: model.get_layer(f"merge_{key}").output for key in model.input}
    return inputs, {"logits": model.get_layer("choices").input[0]}


def _forward(model, names):
    whole = submodel(*_graph(model, names), name="whole")
    return lambda inputs: whole(inputs, training=False)


def _forward_of(lookup, model, names, max_length):
    """Return a function of the model's outputs that reads embeddings by `lookup(table, ids)`."""
    layer = model.get_layer("embeddings")
    if isinstance(layer, AdaptiveEmbedding):  # its tables are read by clusters
        return _forward(model, names)
    # The part of the model after the embeddings.
    inputs, outputs = _graph(model, names)
    rest = submodel(
        [layer.output, inputs],
        outputs,
        name="rest",  # a fixed name, not a counted one, so that files are reproducible
    )
    tokens = ops.convert_to_numpy(layer.token_table)
    positions = segments = None
    if getattr(layer, "max_length", None):
        start = layer.position_offset  # rows before it, and beyond the end, are never read
        positions = ops.convert_to_numpy(layer.position_table)[start : start + max_length]
    if getattr(layer, "num_segments", 0):
        segments = ops.convert_to_numpy(layer.segment_table)

    def rows(table, ids):  # ids (1, L) or (L,)
        return lookup(tf.constant(table), tf.reshape(ids, (-1,)))[None]

    def forward(inputs):
        ids = inputs["token_ids"]
        x = rows(tokens, ids)
        if positions is not None:
            x += rows(positions, tf.range(tf.shape(ids)[1]))
        if segments is not None:
            several = layer.num_segments > 1
            x += rows(segments, inputs["segment_ids"] if several else tf.zeros_like(ids))
        for part in (getattr(layer, "norm", None), getattr(layer, "projection", None)):
            x = x if part is None else part(x)
        return rest([x, inputs], training=False)

    return forward


# The converter maps this name to EMBEDDING_LOOKUP, whose table gets a float32 scale for each row.
# A gather's table gets one scale, which a few large rows would determine.
@tf.function(experimental_implements="embedding_matmul")
def _embedding_lookup(table, ids):
    return tf.gather(table, ids)


def _rounded_lookup(table, ids):
    """Look up rows of a table rounded here to 8 bits, with a scale for each row.

    With fixed ranges the converter would give the table one scale.
    """
    if table.shape.num_elements() < SMALL:
        return tf.gather(table, ids)
    scales = tf.maximum(tf.reduce_max(tf.abs(table), axis=1), 1e-12) / 127
    rounded = tf.cast(tf.round(table / scales[:, None]), tf.int8)
    return tf.cast(tf.gather(rounded, ids), tf.float32) * tf.gather(scales, ids)[:, None]


# Lookup function for the embedding tables of quantised files.
LOOKUPS = {
    "int8": _embedding_lookup,
    "static_int8": _rounded_lookup,
    "int4": _embedding_lookup,
    "int4_block32": _embedding_lookup,
}


def _pool(states, inputs, pooling):
    """Pool states (1, L, D) to a vector of length 1, (1, D), without padding."""
    if pooling == "first":
        x = states[:, 0]
    else:
        mask = tf.cast(inputs["padding_mask"], states.dtype)[..., None]
        x = tf.reduce_sum(states * mask, axis=1) / tf.maximum(tf.reduce_sum(mask, axis=1), 1.0)
    return tf.math.l2_normalize(x, axis=-1)


@contextlib.contextmanager
def _quiet():
    """Temporarily silence TensorFlow's notices of every variable and file."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
