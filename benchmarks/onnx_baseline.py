"""int8 baseline of a PyTorch model in ONNX Runtime, to compare with a .tflite.

Needs `.[benchmarks]`, which is imported inside functions alone.
"""

import inspect
import logging
import warnings

import numpy as np

from distill.reports.latency import LENGTHS

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def export_int8(model, folder):
    """Write a model as .onnx with dynamic int8 weights: plain and, for a BERT, fused.

    The float32 export is first compared with PyTorch. The fused one comes from ONNX Runtime's
    transformer optimizer: embeddings, attention, GELU and layer normalisation are an operator
    each.

    Args:
        model: of `transformers`, whose output has `logits`, in evaluation mode.
        folder: a `pathlib.Path` to write into.

    Returns:
        {name: path}.

    Raises:
        AssertionError: if the outputs of an .onnx differ from the model's.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # the tools log every node
    try:
        paths = {"onnxruntime": _export(model, folder / "student.onnx")}
        if model.config.model_type == "bert":
            paths["onnxruntime, fused"] = _export_fused(model, folder)
        for name, path in paths.items():
            _compare(name, model, onnx_session(path))
            paths[name] = path.with_suffix(".int8.onnx")
            # ONNX cannot infer the output types of fused operations, which are not its own.
            options = {"DefaultTensorType": 1}  # onnx.TensorProto.FLOAT
            quantize_dynamic(path, paths[name], weight_type=QuantType.QInt8, extra_options=options)
    finally:
        logging.disable(before)
    return paths


def onnx_session(path):
    """Return a function from ids and mask (1, L) to the logits of an .onnx, on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]

    def run(ids, mask):
        values = dict(zip(INPUTS, (ids, mask, 0 * ids), strict=True))
        return session.run(None, {name: values[name] for name in names})[0]

    return run


def _ids(model, length):
    rng = np.random.default_rng(length)
    return rng.integers(5, model.config.vocab_size, (1, length))


def _export(model, path):
    """Export a model to .onnx in float32, and return the path."""
    import torch

    takes = inspect.signature(model.forward).parameters
    names = [name for name in INPUTS if name in takes]
    with warnings.catch_warnings():
        # Warnings of traced branches; `_compare` checks that these are right.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (),
            str(path),
            kwargs={name: torch.ones((1, 8), dtype=torch.long) for name in names},
            input_names=names,
            output_names=["logits"],
            dynamic_axes={name: {1: "length"} for name in names},
            dynamo=False,
        )
    return path


def _export_fused(model, folder):
    """Export a BERT through ONNX Runtime's transformer optimizer, and return the path."""
    from onnxruntime.transformers import optimizer

    model.set_attn_implementation("eager")  # the optimizer recognises no other
    path, config = folder / "student.fused.onnx", model.config
    optimizer.optimize_model(
        str(_export(model, folder / "student.eager.onnx")),
        "bert",
        num_heads=config.num_attention_heads,
        hidden_size=config.hidden_size,
    ).save_model_to_file(str(path))
    return path


def _compare(name, model, run):
    """Print the largest difference between an .onnx and PyTorch; raise if it is large."""
    import torch

    difference, largest = 0.0, 1.0
    for length in LENGTHS:
        ids = _ids(model, length)
        mask = (np.arange(length) < 0.7 * length).astype("int64")[None]
        with torch.no_grad():
            inputs = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}
            expected = model(**inputs).logits.numpy()
        difference = max(difference, float(np.abs(run(ids, mask) - expected).max()))
        largest = max(largest, float(np.abs(expected).max()))
    print(f"{name}: float32 logits differ from PyTorch's by at most {difference:.1e}")
    if difference > 1e-4 * largest:
        raise AssertionError(f"{name} does not compute the same: {difference}")
