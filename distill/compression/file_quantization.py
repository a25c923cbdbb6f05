"""Quantisation of exported files, and calibration of activation ranges."""

import dataclasses

import flatbuffers
import keras
import numpy as np
import tensorflow as tf
from absl import logging

from tfnlp.quantization.fake_quantization import (
    fake_quantize,
    get_ranges,
    has_products,
    kernels_in_float,
    leave_outliers_in_float,
    observing,
    weights_without_ranges,
)
from tfnlp.text import LengthBatches
from tfnlp.utils.errors import InputError, unknown_name

# Fewer texts do not cover the ranges of activations.
LEAST_TEXTS = 16


@dataclasses.dataclass(frozen=True)
class Quantization:
    """Settings for quantising a file.

    Args:
        description: for people.
        weight_bits: of the weights of dense layers and embedding tables; 32 is float32.
        block_size: number of weights that share a scale; a whole channel or row where None.
        static: whether activations are 8-bit integers of calibrated ranges, rather than quantised
            at run time.
    """

    description: str
    weight_bits: int = 32
    block_size: int | None = None
    static: bool = False


QUANTIZATIONS = {
    "float32": Quantization("weights as they are"),
    "float16": Quantization("weights in 16 bits", 16),
    "int8": Quantization("weights in 8 bits, activations quantised as they come", 8),
    "static_int8": Quantization("weights and activations in 8 bits", 8, static=True),
    "int4": Quantization("weights in 4 bits, a scale for each channel or row", 4),
    "int4_block32": Quantization("weights in 4 bits, a scale for each 32", 4, 32),
}
# Aliases of these names.
ALIASES = {"none": "float32", "dynamic_int8": "int8"}


def check_quantization(name):
    """Return the name in `QUANTIZATIONS` that a name or an alias stands for.

    Raises:
        InputError: if the name is unknown, or the package that it needs is not installed.
    """
    name = ALIASES.get(name, name)
    if name not in QUANTIZATIONS:
        raise unknown_name("quantization", name, QUANTIZATIONS)
    if QUANTIZATIONS[name].weight_bits < 8:
        try:
            import ai_edge_quantizer  # noqa: F401
        except ImportError:
            raise InputError(
                f"quantization={name!r} needs the package ai-edge-quantizer; install "
                "tfnlp[quantizer], or use int8."
            ) from None
    return name


def check_calibration(name, model, texts):
    """Raise an InputError unless a model or texts give the ranges that a quantization needs.

    A recurrent model without dense layers to round is refused: its file would be that of "int8".

    Args:
        name: of the quantization.
        model: to be exported.
        texts: to calibrate with, or None.
    """
    if not QUANTIZATIONS[name].static:
        if texts is not None:
            raise InputError(
                f"`calibration_text` is for quantization='static_int8', not {name!r}; leave it "
                "out."
            )
        return
    if not has_products(model):
        raise InputError(
            f"quantization={name!r} rounds what dense layers and attention take and give, of "
            f"which a {model.name} model has none that is rounded; use int8."
        )
    # Ranges that were never updated all start at 0, and would round everything away.
    if texts is None and not any(low < 0 for low, _ in get_ranges(model).values()):
        raise InputError(
            "quantization='static_int8' needs `calibration_text`, or a model from quantisation-"
            "aware training, to know the ranges of activations."
        )
    if texts is not None and len(texts) < LEAST_TEXTS:
        raise InputError(
            f"`calibration_text` holds {len(texts)} texts, but at least {LEAST_TEXTS} are needed "
            "to see the ranges of activations."
        )


def in_columns(calibration_text):
    """Return strings as ([string, ...],), or (text, second text) pairs as two such lists.

    Raises:
        InputError: if strings and pairs are mixed, or a tuple is not a pair.
    """
    if all(isinstance(text, str) for text in calibration_text):
        return (list(calibration_text),)
    if any(isinstance(text, str) or len(text) != 2 for text in calibration_text):
        raise InputError(
            "`calibration_text` holds strings beside pairs, or tuples of other than two texts; "
            "give strings alone, or (text, second text) pairs alone."
        )
    return tuple(map(list, zip(*calibration_text, strict=True)))


def calibrated(model, encodings, pad_token_id=0, batch_size=16):
    """Return a copy of a model, fake-quantised with activation ranges calibrated on texts.

    Layers with outliers in their inputs or outputs get no fixed ranges. They are quantised at run
    time, as in "int8".

    Args:
        model: from `tfnlp.models`.
        encodings: `tfnlp.text.Encodings` of the texts.
        pad_token_id: of the tokenizer.
        batch_size: B.
    """
    copy = keras.models.clone_model(model)
    fake_quantize(copy)  # with fresh ranges, even if the model has some
    both = zip(weights_without_ranges(copy), weights_without_ranges(model), strict=True)
    for weight, value in both:
        weight.assign(value)
    batches = LengthBatches(encodings, batch_size, pad_token_id=pad_token_id)
    sizes = {}
    with observing(copy, sizes):
        for indices in batches.batch_indices():
            inputs = batches.batch(indices)[0]
            if model.head == "chooser":  # one choice a question
                inputs = {name: x[:, None] for name, x in inputs.items()}
            copy(inputs)
    logging.info("Calibrated %d ranges on %d texts.", len(get_ranges(copy)), len(encodings))
    wide = leave_outliers_in_float(copy, sizes)
    if wide:
        logging.info(
            "%d layers have outliers among what they take or give, and quantise it as it comes, "
            "as int8 does: %s.",
            len(wide),
            ", ".join(wide),
        )
    return copy


def set_up(converter, name):
    """Configure a `tf.lite.TFLiteConverter` for a quantization."""
    quantization = QUANTIZATIONS[name]
    if quantization.weight_bits in (8, 16):
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantization.weight_bits == 16:
        converter.target_spec.supported_types = [tf.float16]


def quantize_file(content, name, model):
    """Quantise weights of a converted file that the converter cannot quantise.

    Args:
        content: the bytes of a .tflite, with those weights still in float32.
        name: of the quantization.
        model: that was converted.

    Returns:
        The bytes of the new file.
    """
    quantization = QUANTIZATIONS[name]
    bits = quantization.weight_bits
    if bits >= 8:
        kernels = kernels_in_float(model) if quantization.static else []
        return round_kernels(content, kernels) if kernels else content
    from ai_edge_quantizer import algorithm_manager, qtyping, quantizer

    granularity = qtyping.QuantGranularity.CHANNELWISE
    if quantization.block_size:
        granularity = qtyping.QuantGranularity[f"BLOCKWISE_{quantization.block_size}"]
    maker = quantizer.Quantizer(bytearray(content))
    operations = qtyping.TFLOperationName
    algorithms = algorithm_manager.AlgorithmName
    # MSE scales have 1/1.4 of the error of scales by the largest weight, but the package has
    # none for blocks.
    algorithm = algorithms.MIN_MAX_UNIFORM_QUANT if quantization.block_size else algorithms.MSE
    for operation in (operations.FULLY_CONNECTED, operations.EMBEDDING_LOOKUP):
        maker.add_dynamic_config(".*", operation, bits, granularity, algorithm)
    quiet = {"enable_progress_report": False, "enable_progress_bar": False}
    return _with_buffers_inside(bytes(maker.quantize(**quiet).quantized_model))


def round_kernels(content, kernels):
    """Round some dense layers of a .tflite to 8-bit weights, with inputs quantised at run time.

    The converter can do this only to all dense layers, or to none where one has fixed ranges.

    Args:
        content: the bytes of a .tflite.
        kernels: arrays (D, units), the weights of these layers.

    Returns:
        The bytes of the new file.
    """
    from tensorflow.lite.python import schema_py_generated as schema

    tree = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content))
    codes = {code.builtinCode: i for i, code in enumerate(tree.operatorCodes)}
    dense = codes.get(schema.BuiltinOperator.FULLY_CONNECTED)
    wanted = {kernel.T.astype("float32").tobytes() for kernel in kernels}
    rounded = set()  # signatures share buffers
    for graph in tree.subgraphs:
        for operator in graph.operators:
            tensor = graph.tensors[operator.inputs[1]] if operator.opcodeIndex == dense else None
            if tensor is None or tensor.type != schema.TensorType.FLOAT32:
                continue
            buffer = tree.buffers[tensor.buffer]
            if tensor.buffer not in rounded:
                if buffer.data is None or bytes(buffer.data) not in wanted:
                    continue
                rows = np.frombuffer(bytes(buffer.data), "float32").reshape(tensor.shape)
                rounded.add(tensor.buffer)
                buffer.scales = np.maximum(np.abs(rows).max(1), 1e-12) / 127
                whole = np.round(rows / buffer.scales[:, None]).astype("int8")
                buffer.data = whole.view("uint8").ravel()
            tensor.type = schema.TensorType.INT8
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = buffer.scales
            tensor.quantization.zeroPoint = np.zeros(len(buffer.scales), "int64")
            tensor.quantization.quantizedDimension = 0
            operator.builtinOptions.asymmetricQuantizeInputs = True
            tree.operatorCodes[dense].version = max(tree.operatorCodes[dense].version, 12)
    b = flatbuffers.Builder(len(content) + 1024)
    b.Finish(tree.Pack(b), file_identifier=b"TFL3")
    return bytes(b.Output())


def _with_buffers_inside(content):
    """Move the large buffers that follow a .tflite's flatbuffer into it, and return the bytes.

    Later additions to the file would otherwise shift them.
    """
    from tensorflow.lite.python import schema_py_generated as schema

    tree = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content))
    for buffer in tree.buffers:
        if buffer.offset > 1:  # 0 and 1 mean no offset
            data = content[buffer.offset : buffer.offset + buffer.size]
            buffer.data, buffer.offset, buffer.size = np.frombuffer(data, "uint8"), 0, 0
    b = flatbuffers.Builder(len(content) + 1024)
    b.Finish(tree.Pack(b), file_identifier=b"TFL3")
    return bytes(b.Output())
