"""Conversion of Keras models to .tflite files, with a signature for each length."""

import contextlib
import tempfile

import keras
import tensorflow as tf
from absl import logging
from keras import ops
from tensorflow.python.framework import ops as framework

from distill.compression.file_quantization import converter_options, quantize_file
from distill.export.converter import convert
from distill.export.head_training import head_endpoints
from distill.export.length_signatures import DEFAULT, cut, signatures
from distill.runtime.litert_backend import INPUTS
from tfnlp.checkpoints.sentence_modules import ANY_LENGTH
from tfnlp.functional.local_attention import is_short
from tfnlp.models import reads_choices, submodel
from tfnlp.pipelines.keras_backend import file_outputs
from tfnlp.quantization.rounded_products import SMALL
from tfnlp.utils.errors import InputError


def convert_text_model(model, kind, options, lengths, tokenize=None):
    """Convert a model to a .tflite with a signature for each length.

    Args:
        model: from `tfnlp.models`.
        kind: the `tfnlp.tasks.kinds.Kind` of the model.
        options: `Export`, with the quantization and `max_length`.
        lengths: from `check_lengths`; None is any length.
        tokenize: from `text_input`, for one signature, which takes strings; or None.

    Returns:
        The bytes of the file.
    """
    forward = submodel(*_graph(model, kind.reads), name="whole")

    def inputs_of(ids, mask, segment_ids):
        inputs = {"token_ids": ids, "padding_mask": mask, "segment_ids": segment_ids}
        is_cut = ids.shape[1] is None and options.max_length < ANY_LENGTH
        return cut(inputs, options.max_length) if is_cut else inputs

    def run(ids, mask, segment_ids):
        return file_outputs(kind, forward(inputs_of(ids, mask, segment_ids), training=False))

    endpoints = {
        key: (run, [tf.TensorSpec((1, length), "int32", name=name) for name in INPUTS])
        for key, length in signatures(lengths).items()
    }
    if options.trainable_head:
        endpoints |= head_endpoints(model, inputs_of, endpoints[DEFAULT][1])
    if tokenize is not None:
        string = tf.TensorSpec((1,), tf.string, "text")
        endpoints = {DEFAULT: (lambda text: run(*tokenize(text)), [string])}
    several = tokenize is not None, options.max_length
    return to_tflite(model, endpoints, options.quantization, *several)


def check_computes_in_float32(model):
    """Raise an InputError for a model in half precision, which the converter barely supports."""
    for layer in model._flatten_layers(include_self=False):
        if layer.compute_dtype in ("bfloat16", "float16"):
            raise InputError(
                f"The model computes in {layer.compute_dtype} ({layer.dtype_policy.name}), but "
                "files are made of one that computes in float32; save its folder, load it under "
                'keras.config.set_dtype_policy("float32"), and export that.'
            )


def to_tflite(model, endpoints, quantization, custom_operators=False, max_length=None):
    """Convert functions over a model's weights to the signatures of a .tflite.

    Args:
        model: the owner of the weights.
        endpoints: {name of a signature: (function, list of its `tf.TensorSpec`s)}; the functions
            return dicts of tensors.
        quantization: one of `QUANTIZATIONS`.
        custom_operators: whether operations outside TFLite's own are allowed.
        max_length: the most positions that are read; all of the model's where None.

    Returns:
        The bytes of the file.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        quiet(),
        _constant_tables(model, LOOKUPS.get(quantization), max_length),
        _bands(model, max_length),
        _forgotten_gradients(),
    ):
        archive = keras.export.ExportArchive()
        archive.track(model)
        for key, (function, specs) in endpoints.items():
            archive.add_endpoint(key, function, input_signature=specs)
        archive.write_out(folder, verbose=False)
        content = convert(
            folder,
            [*endpoints],
            **converter_options(quantization),
            custom_operators=custom_operators,
        )
        return quantize_file(content, quantization, model)


def _graph(model, names):
    """Return the inputs and outputs of the model for one text, as tensors of its graph.

    For a chooser these lie between the merging and the splitting of its choices.
    """
    if not reads_choices(model):
        outputs = {name: model.output[name] for name in names}
        if "unit" in (layer.name for layer in model.layers):
            # `file_outputs` does it, whose operator alone gives 0 for 0.
            outputs["embedding"] = model.get_layer("unit").input
        return model.input, outputs
    inputs = {key: model.get_layer(f"merge_{key}").output for key in model.input}
    return inputs, {"logits": model.get_layer("choices").input[0]}


@contextlib.contextmanager
def _constant_tables(model, lookup, max_length):
    """Temporarily make embeddings read constant tables by `lookup(table, ids)`, if that is given.

    Rows of positions beyond `max_length`, which are never read, are left out.
    """
    layers = [x for x in model.layers if hasattr(x, "token_table")] if lookup else []
    values = {}
    for layer in layers:
        for name in ("token_table", "position_table", "segment_table"):
            table = getattr(layer, name, None)
            if table is not None:
                values[id(table)] = ops.convert_to_numpy(table)
                if max_length and name == "position_table":
                    values[id(table)] = values[id(table)][: layer.position_offset + max_length]

    def take_rows(table, ids):  # ids (1, T) or (T,)
        if len(ids.shape) == 2 and ids.shape[0] is None:  # of Keras' signature, left out
            return ops.take(table, ids, axis=0)
        rows = lookup(tf.constant(values[id(table)]), tf.reshape(ids, (-1,)))
        return rows if len(ids.shape) == 1 else rows[None]

    for layer in layers:
        vars(layer)["lookup"] = take_rows
    try:
        yield
    finally:
        for layer in layers:
            del vars(layer)["lookup"]


@contextlib.contextmanager
def _forgotten_gradients():
    """Forget the custom gradients of what is traced meanwhile, which no file has.

    TensorFlow never lets go of one, nor of its graph: 0.8 GB for each file of MiniLM.
    """
    registry = framework.gradient_registry._registry
    known = {*registry}
    try:
        yield
    finally:
        for name in registry.keys() - known:
            del registry[name]


@contextlib.contextmanager
def _bands(model, max_length):
    """Temporarily compute local attention with a mask where no text is longer than its bands.

    TFLite's delegate leaves to slower kernels what follows a length that is computed.
    """
    layers = [x for x in model._flatten_layers() if getattr(x, "window", None)]
    layers = [x for x in layers if max_length and is_short(max_length, x.window)]
    for layer in layers:
        layer.by_bands = False
    try:
        yield
    finally:
        for layer in layers:
            layer.by_bands = True


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


@contextlib.contextmanager
def quiet():
    """Silence notices while the context is active, such as TensorFlow's of every variable."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
