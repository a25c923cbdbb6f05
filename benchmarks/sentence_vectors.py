"""Vectors of a folder of sentence-transformers beside that library's: cosine, and time of a text.

    python -m benchmarks.sentence_vectors --model_dir=all-MiniLM-L6-v2

Texts of 5 tokens to the model's most, each by itself, on one thread. Needs `.[parity]`.
"""

import pathlib
import tempfile

import numpy as np
from absl import app, flags

from benchmarks.turns import medians
from distill import export, runtime
from tfnlp import checkpoints, pipelines, text

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Folder of sentence-transformers.", required=True)
flags.DEFINE_string("text", "a fine film to see twice, with friends who laugh", "Text to repeat.")


def main(_):
    import sentence_transformers
    import torch

    torch.set_num_threads(1)
    theirs = sentence_transformers.SentenceTransformer(FLAGS.model_dir, device="cpu").float()
    model = checkpoints.load_model(FLAGS.model_dir, "embedder")
    tokenizer = text.load_tokenizer(FLAGS.model_dir)
    settings = checkpoints.read_task_settings(FLAGS.model_dir)
    most = settings.get("max_length", 128)
    runners = {"Keras": pipelines.load_runner(FLAGS.model_dir)}
    with tempfile.TemporaryDirectory() as folder:
        for quantization in ("float32", "int8"):
            path = pathlib.Path(folder, f"{quantization}.tflite")
            options = export.Export(quantization=quantization, max_length=most)
            export.export_tflite(model, path, tokenizer, options=options, task_settings=settings)
            runners[quantization] = runtime.TextEmbedder(path)
        print(
            "| tokens | cosine of " + " | cosine of ".join(runners) + " | ms, int8 | ms, theirs |"
        )
        print("| --- " * (len(runners) + 3) + "|")
        words = FLAGS.text.split()
        for count in (5, 16, 32, 64, 128, 256, 512):
            if count > most:
                break
            one = " ".join(words[i % len(words)] for i in range(count - 2))
            expected = theirs.encode([one])[0]
            expected = expected / np.linalg.norm(expected)
            cosines = [float(runner.embed([one])[0] @ expected) for runner in runners.values()]
            calls = {
                "int8": lambda one=one: runners["int8"].embed([one]),
                "theirs": lambda one=one: theirs.encode([one]),
            }
            times = medians(calls)
            columns = [f"{x:.6f}" for x in cosines] + [f"{x:.2f}" for x in times.values()]
            print(f"| {count} | " + " | ".join(columns) + " |")


if __name__ == "__main__":
    app.run(main)
