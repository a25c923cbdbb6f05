"""Quantisation of exported files: their weights in fewer bits."""

import flatbuffers
import numpy as np
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema

from distill.compression.compression_settings import QUANTIZATIONS
from tfnlp.quantization.fake_quantization import kernels_in_float
from tfnlp.utils.errors import needs_packages, unknown_name


def check_quantization(name):
    """Raise an InputError if a name is not in `QUANTIZATIONS`, or its package is not installed."""
    if name not in QUANTIZATIONS:
        raise unknown_name("quantization", name, QUANTIZATIONS)
    if QUANTIZATIONS[name].weight_bits < 8:
        with needs_packages(f"quantization={name!r}", "litert-quantizer"):
            import litert_quantizer  # noqa: F401


def converter_options(name):
    """Return arguments of `distill.export.converter.convert` for a quantization, a dict."""
    bits = QUANTIZATIONS[name].weight_bits
    return {
        "optimizations": ["DEFAULT"] if bits in (8, 16) else [],
        "weight_type": tf.float16 if bits == 16 else None,
    }


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
    if quantization.weight_bits < 8:
        return _quantize_below_8_bits(content, quantization)
    kernels = kernels_in_float(model) if quantization.static else []
    return round_kernels(content, kernels) if kernels else content


def _quantize_below_8_bits(content, quantization):
    """Quantise the weights of dense layers and embedding tables with litert_quantizer."""
    from litert_quantizer import algorithm_manager, qtyping, quantizer

    bits, granularity = quantization.weight_bits, qtyping.QuantGranularity.CHANNELWISE
    if quantization.block_size:
        granularity = qtyping.QuantGranularity[f"BLOCKWISE_{quantization.block_size}"]
    algorithms = algorithm_manager.AlgorithmName
    # MSE scales have 1/1.4 of the error of scales by the largest weight, but the package has
    # none for blocks.
    algorithm = algorithms.MIN_MAX_UNIFORM_QUANT if quantization.block_size else algorithms.MSE
    engine = quantizer.Quantizer(bytearray(content))
    operations = qtyping.TFLOperationName
    for operation in (operations.FULLY_CONNECTED, operations.EMBEDDING_LOOKUP):
        engine.add_dynamic_config(".*", operation, bits, granularity, algorithm)
    quiet = {"enable_progress_report": False, "enable_progress_bar": False}
    return _with_buffers_inside(bytes(engine.quantize(**quiet).quantized_model))


def round_kernels(content, kernels):
    """Round some dense layers of a .tflite to 8-bit weights, with inputs quantised at run time.

    The converter can do this only to all dense layers, or to none where one has fixed ranges.

    Args:
        content: the bytes of a .tflite.
        kernels: arrays (D, units), the weights of these layers.

    Returns:
        The bytes of the new file.
    """
    tree = _parse(content)
    float_kernels = {kernel.T.astype("float32").tobytes() for kernel in kernels}
    scales = {}  # (units,) of each rounded buffer, since signatures share buffers
    for code, operator, tensor in _dense_operators(tree):
        buffer = tree.buffers[tensor.buffer]
        if tensor.buffer not in scales:
            if buffer.data is None or bytes(buffer.data) not in float_kernels:
                continue
            rows = np.frombuffer(bytes(buffer.data), "float32").reshape(tensor.shape)
            scales[tensor.buffer], integers = round_rows(rows)
            buffer.data = integers.view("uint8").ravel()
        tensor.type = schema.TensorType.INT8
        tensor.quantization = _scale_by_row(scales[tensor.buffer])
        operator.builtinOptions.asymmetricQuantizeInputs = True
        code.version = max(code.version, 12)
    return _pack(tree, len(content))


def round_rows(rows):
    """Return the scales (units,) and 8-bit integers (units, D) of a kernel's rows (units, D)."""
    scales = np.maximum(np.abs(rows).max(1), 1e-12) / 127
    return scales, np.round(rows / scales[:, None]).astype("int8")


def _dense_operators(tree):
    """Yield code, operator and weights, a float32 tensor, of each dense layer of a .tflite."""
    for graph in tree.subgraphs:
        for operator in graph.operators:
            code = tree.operatorCodes[operator.opcodeIndex]
            if code.builtinCode == schema.BuiltinOperator.FULLY_CONNECTED:
                tensor = graph.tensors[operator.inputs[1]]
                if tensor.type == schema.TensorType.FLOAT32:
                    yield code, operator, tensor


def _scale_by_row(scales):
    quantization = schema.QuantizationParametersT()
    quantization.scale = scales
    quantization.zeroPoint = np.zeros(len(scales), "int64")
    quantization.quantizedDimension = 0
    return quantization


def _with_buffers_inside(content):
    """Move the large buffers that follow a .tflite's flatbuffer into it, and return the bytes.

    Later additions to the file would otherwise shift them.
    """
    tree = _parse(content)
    for buffer in tree.buffers:
        if buffer.offset > 1:  # 0 and 1 mean no offset
            data = content[buffer.offset : buffer.offset + buffer.size]
            buffer.data, buffer.offset, buffer.size = np.frombuffer(data, "uint8"), 0, 0
    return _pack(tree, len(content))


def _parse(content):
    """Return the flatbuffer of a .tflite as an object tree."""
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(content))


def _pack(tree, size):
    """Return the bytes of a .tflite's object tree, of about `size`."""
    builder = flatbuffers.Builder(size + 1024)
    builder.Finish(tree.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())
