"""Latency of an int8 student as .tflite and in ONNX Runtime, one thread, side by side.

    python -m benchmarks.tflite_latency --output_dir=runs/latency

Both run the same 4-layer, 312-wide BERT (TinyBERT's size) with dynamic-range int8 weights;
rounds alternate, figures are medians. Needs tfnlp[benchmarks].
"""

import pathlib
import time

from absl import flags

from recipes import common

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Folder for the files and latency.json.")
flags.DEFINE_integer("repeats", 50, "Timed runs of each in a round.", 1)
flags.DEFINE_integer("rounds", 5, "Rounds.", 1)
flags.mark_flag_as_required("output_dir")

LENGTHS = (16, 32, 64, 128)


def main():
    import numpy as np

    from tfnlp.files import write_json

    folder = pathlib.Path(FLAGS.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    run_tflite, tflite_path = tflite_runner(folder)
    run_onnx, onnx_path = onnx_runner(folder)
    print(f".tflite {tflite_path.stat().st_size / 1e6:.2f} MB with vocabulary and labels")
    print(f".onnx   {onnx_path.stat().st_size / 1e6:.2f} MB")
    figures = {}
    for length in LENGTHS:
        ids = np.random.default_rng(0).integers(1000, 30000, (1, length))
        found = {"tflite": [], "onnxruntime": []}
        for _ in range(FLAGS.rounds):
            for name, run in (("tflite", run_tflite), ("onnxruntime", run_onnx)):
                run(ids)
                seconds = []
                for _ in range(FLAGS.repeats):
                    start = time.perf_counter()
                    run(ids)
                    seconds.append(time.perf_counter() - start)
                found[name].append(float(np.median(seconds)) * 1e3)
        a, b = (float(np.median(found[name])) for name in ("tflite", "onnxruntime"))
        figures[str(length)] = {"tflite_ms": a, "onnxruntime_ms": b, "ratio": a / b}
        print(
            f"{length:>3} tokens: .tflite {a:.2f} ms, ONNX Runtime {b:.2f} ms, {a / b:.2f} of it"
        )
    write_json(folder / "latency.json", figures)


def tflite_runner(folder):
    """A function from ids (1, L) that runs the .tflite, and its path."""
    from distill.runtime import TextClassifier
    from distill.tflite import export_tflite
    from tfnlp.models import BertConfig, build_model
    from tfnlp.text import WordPieceTokenizer
    from tfnlp.text.tokenizer import Encoding
    from tfnlp.text.wordpiece import SPECIAL_TOKENS

    config = BertConfig(num_layers=4, hidden_dim=312, intermediate_dim=1200)
    filler = [f"token{i:05d}" for i in range(config.vocabulary_size - len(SPECIAL_TOKENS))]
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *filler], strip_accents=False)
    path = folder / "student.tflite"
    export_tflite(build_model(config, "classifier", 2), path, tokenizer, ["negative", "positive"])
    classifier = TextClassifier(path, num_threads=1)

    def run(ids):
        classifier.run(Encoding(ids[0].tolist(), [0] * ids.shape[1], cut=False))

    return run, path


def onnx_runner(folder):
    """A function from ids (1, L) that runs the same model in ONNX Runtime, and its path."""
    import numpy as np
    import onnxruntime
    import torch
    import transformers
    from onnxruntime.quantization import QuantType, quantize_dynamic

    config = transformers.BertConfig(
        num_hidden_layers=4, hidden_size=312, intermediate_size=1200, num_attention_heads=12
    )
    model = transformers.BertForSequenceClassification(config).eval()
    names = ["input_ids", "attention_mask", "token_type_ids"]
    example = tuple(torch.ones((1, 8), dtype=torch.long) for _ in names)
    torch.onnx.export(
        model,
        example,
        str(folder / "student.onnx"),
        input_names=names,
        output_names=["logits"],
        dynamic_axes={name: {1: "length"} for name in names},
        dynamo=False,
    )
    path = folder / "student.int8.onnx"
    quantize_dynamic(folder / "student.onnx", path, weight_type=QuantType.QInt8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])

    def run(ids):
        session.run(None, dict(zip(names, (ids, np.ones_like(ids), 0 * ids), strict=True)))

    return run, path


if __name__ == "__main__":
    common.run(main)
