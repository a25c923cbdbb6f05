"""Latency of an int8 student as .tflite and in ONNX Runtime, on one thread.

    python -m benchmarks.tflite_latency --output_dir=runs/latency

All run a 4-layer, 312-wide BERT (TinyBERT's size) with dynamic-range int8 weights: the .tflite,
the .onnx as it is exported, and the .onnx after ONNX Runtime's transformer optimizer, which fuses
embeddings, attention, GELU and layer normalisation. What PyTorch exports is compared with what it
computes first. Rounds alternate, figures are medians; beside the clock's stands the processor
time, which other work on the machine changes less. Needs `.[benchmarks]`.
"""

import pathlib
import time

import numpy as np
from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", None, "Folder for the files and latency.json.")
flags.DEFINE_integer("repeats", 50, "Timed runs of each in a round.", 1)
flags.DEFINE_integer("rounds", 5, "Rounds.", 1)
flags.mark_flag_as_required("output_dir")

LENGTHS = (16, 32, 64, 128)


def main():
    entry_point.load_tensorflow()
    from tfnlp.utils.files import write_json

    folder = pathlib.Path(FLAGS.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    runners = {"tflite": tflite_runner(folder)} | onnx_runners(folder)
    for name, (_, path) in runners.items():
        print(f"{name}: {path.stat().st_size / 1e6:.2f} MB")
    figures = {}
    for length in LENGTHS:
        ids = np.random.default_rng(0).integers(1000, 30000, (1, length))
        found = {name: [] for name in runners}
        for _ in range(FLAGS.rounds):
            for name, (run, _) in runners.items():
                found[name].append(round_of(lambda run=run, ids=ids: run(ids)))
        ms, core_ms = (
            {name: float(np.median([pair[i] for pair in found[name]])) for name in runners}
            for i in range(2)
        )
        ratios, core_ratios = ({n: x["tflite"] / x[n] for n in runners} for x in (ms, core_ms))
        figures[str(length)] = {"ms": ms, "tflite_takes": ratios}
        figures[str(length)] |= {"core_ms": core_ms, "tflite_takes_of_core": core_ratios}
        print(f"{length} tokens:")
        for name in runners:
            print(
                f"  {name:22} {ms[name]:6.2f} ms; .tflite takes {ratios[name]:.2f} of it;  "
                f"{core_ms[name]:6.2f} ms of processor time, {core_ratios[name]:.2f}"
            )
    write_json(folder / "latency.json", figures)


def round_of(run):
    """Return the median milliseconds of a round's runs, by the clock and of processor time."""
    run()
    times = []
    for _ in range(FLAGS.repeats):
        start, core_start = time.perf_counter(), time.process_time()
        run()
        times.append((time.perf_counter() - start, time.process_time() - core_start))
    return np.median(times, axis=0) * 1e3


def tflite_runner(folder):
    """Export a .tflite; return (function of ids (1, L) on one thread, path)."""
    from distill.export.tflite import export_tflite
    from distill.runtime import TextClassifier
    from tfnlp.models import BertConfig, build_model
    from tfnlp.text import WordPieceTokenizer
    from tfnlp.text.tokenizers.tokenizer import Encoding
    from tfnlp.text.tokenizers.wordpiece import FIRST_TOKENS

    config = BertConfig(num_layers=4, hidden_dim=312, intermediate_dim=1200)
    filler = [f"token{i:05d}" for i in range(config.vocabulary_size - len(FIRST_TOKENS))]
    tokenizer = WordPieceTokenizer([*FIRST_TOKENS, *filler], strip_accents=False)
    path = folder / "student.tflite"
    export_tflite(build_model(config, "classifier", 2), path, tokenizer, ["negative", "positive"])
    classifier = TextClassifier(path, num_threads=1)

    def run(ids):
        classifier.backend.run_one(Encoding(ids[0].tolist(), [0] * ids.shape[1], truncated=False))

    return run, path


def onnx_runners(folder):
    """Export .onnx files, plain and fused; return {name: (function of ids (1, L), path)}."""
    import transformers

    from benchmarks.onnx_baseline import export_int8, onnx_session

    config = transformers.BertConfig(
        num_hidden_layers=4, hidden_size=312, intermediate_size=1200, num_attention_heads=12
    )
    model = transformers.BertForSequenceClassification(config).eval()
    found = {}
    for name, path in export_int8(model, folder).items():
        run = onnx_session(path)
        found[name] = (lambda ids, run=run: run(ids, np.ones_like(ids))), path
    return found


if __name__ == "__main__":
    entry_point.run(main)
