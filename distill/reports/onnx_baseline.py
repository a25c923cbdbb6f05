"""int8 baseline of a PyTorch model in ONNX Runtime, to compare with a .tflite.

Needs tfnlp[benchmarks], which is imported inside functions alone.
"""

import inspect
import logging
import pathlib
import tempfile
import time
import warnings

import numpy as np

from tfnlp import checkpoints
from tfnlp.utils.errors import InputError

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
LENGTHS = (16, 32, 64, 128)


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
        paths = _export_all(model, folder)
        int8_paths = {}
        for name, path in paths.items():
            _compare(name, model, onnx_session(path))
            int8_paths[name] = path.with_suffix(".int8.onnx")
            # ONNX cannot infer the output types of fused operations, which are not its own.
            options = {"DefaultTensorType": 1}  # onnx.TensorProto.FLOAT
            quantize_dynamic(
                path, int8_paths[name], weight_type=QuantType.QInt8, extra_options=options
            )
    finally:
        logging.disable(before)
    return int8_paths


def _export_all(model, folder):
    """Export a model to .onnx in float32, and return {name: path}."""
    paths = {"onnxruntime": _export(model, folder / "student.onnx")}
    if model.config.model_type == "bert":
        from onnxruntime.transformers import optimizer

        # The optimizer recognises only eager attention.
        model.set_attn_implementation("eager")
        optimized = optimizer.optimize_model(
            str(_export(model, folder / "student.eager.onnx")),
            "bert",
            num_heads=model.config.num_attention_heads,
            hidden_size=model.config.hidden_size,
        )
        paths["onnxruntime, fused"] = folder / "student.fused.onnx"
        optimized.save_model_to_file(str(paths["onnxruntime, fused"]))
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


def benchmark_onnx(model_dir, lengths=LENGTHS, repeats=50):
    """Measure size and latency of a classifier in ONNX Runtime, int8, on one thread.

    Args:
        model_dir: Hugging Face folder of the classifier.
        lengths: tokens of the texts to time.
        repeats: timed runs for each.

    Returns:
        {name: {"size_mb": ..., "latency_ms": {length: median}}}, for the plain .onnx and, for a
        BERT, the fused one.

    Raises:
        InputError: if tfnlp[benchmarks] is not installed, or the folder is no classifier's.
    """
    try:
        import onnxruntime  # noqa: F401
        import transformers
    except ImportError as e:
        raise InputError(
            f"onnx=True needs {e.name}, which is not installed; pip install tfnlp[benchmarks]."
        ) from None
    if checkpoints.read_head(model_dir) != "classifier":
        raise InputError(f"onnx=True takes the folder of a classifier, and {model_dir} is none.")
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        transformers.utils.logging.disable_progress_bar()
        model = transformers.AutoModelForSequenceClassification.from_pretrained(model_dir)
        for name, path in export_int8(model.eval(), pathlib.Path(folder)).items():
            run, size = onnx_session(path), path.stat().st_size / 1e6
            medians = {}
            for length in lengths:
                ids = _ids(model, length)
                medians[length] = _median_ms(lambda run=run, ids=ids: run(ids, ids**0), repeats)
            figures[name] = {"size_mb": size, "latency_ms": medians}
    return figures


def _median_ms(call, repeats):
    for _ in range(5):
        call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)) * 1e3


def _ids(model, length):
    rng = np.random.default_rng(length)
    return rng.integers(5, model.config.vocab_size, (1, length))


def _export(model, path):
    import torch

    takes = inspect.signature(model.forward).parameters
    names = [name for name in INPUTS if name in takes]
    example = {name: torch.ones((1, 8), dtype=torch.long) for name in names}
    with warnings.catch_warnings():
        # Warnings of traced branches; `_compare` checks that these are right.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (),
            str(path),
            kwargs=example,
            input_names=names,
            output_names=["logits"],
            dynamic_axes={name: {1: "length"} for name in names},
            dynamo=False,
        )
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
