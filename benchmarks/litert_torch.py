"""Latency of ModernBERT's .tflite beside that of litert-torch, in float32 and on one thread.

    python -m venv lt && lt/bin/pip install litert-torch
    python -m benchmarks.litert_torch --litert_torch_python=lt/bin/python --output_dir=runs/litert

A classifier of 6 blocks of width 384 with random weights: litert-torch converts that of
`transformers` for 128 tokens alone, with either of its attentions on a CPU; ours are a file of
that length and one of any length, of the same weights. First their probabilities are compared on
texts of several lengths. The files take turns, in the same interpreter of LiteRT; of each round's
medians the lowest counts, by the clock and of processor time, as other work on the machine only
adds to them. Needs `.[benchmarks]`; litert-torch has an environment of its own.
"""

import pathlib
import subprocess

import numpy as np
from absl import flags

from benchmarks.tflite_latency import FLAGS, round_of
from recipes.shell import entry_point

flags.DEFINE_string("litert_torch_python", None, "Python of an environment with litert-torch.")
flags.mark_flag_as_required("litert_torch_python")

LENGTH, CLASSES, VOCABULARY = 128, 3, 1000
REAL_TOKENS = (1, 17, 64, 100, LENGTH)
TOLERANCE = 1e-4
THEIRS = "litert-torch, {}"
EXACT = THEIRS.format("eager")

# Script for litert-torch's environment: a folder of `transformers`, the file, the length.
CONVERT = """
import sys, litert_torch, torch, transformers

class Probabilities(torch.nn.Module):
    def __init__(self, folder, attention):
        super().__init__()
        load = transformers.AutoModelForSequenceClassification.from_pretrained
        self.model = load(folder, attn_implementation=attention)

    def forward(self, ids, mask):
        return self.model(input_ids=ids, attention_mask=mask).logits.softmax(-1)

folder, path, length, attention = sys.argv[1:]
inputs = {name: torch.ones((1, int(length)), dtype=torch.int32) for name in ("ids", "mask")}
model = Probabilities(folder, attention).eval()
litert_torch.convert(model, sample_kwargs=inputs).export(path)
"""


def main():
    entry_point.load_tensorflow()
    folder = pathlib.Path(FLAGS.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    paths = convert_theirs(folder) | convert_ours(folder)
    runners = {name: runner(path) for name, path in paths.items()}
    print(
        f"{LENGTH} tokens: ms, of processor time, shares of {EXACT}'s; MB; difference from it by"
    )
    print(f"tokens of a text: {', '.join(map(str, REAL_TOKENS))}")
    compared = {name: differences(run, runners[EXACT]) for name, run in runners.items()}
    rounds = {name: [] for name in runners}
    for _ in range(FLAGS.rounds):
        for name, run in runners.items():
            rounds[name].append(round_of(lambda run=run: run(LENGTH)))
    lowest = {name: np.min(times, axis=0) for name, times in rounds.items()}
    for name, path in paths.items():
        figures = *lowest[name], *lowest[name] / lowest[EXACT], path.stat().st_size / 1e6
        print("  {:20}{:6.2f} {:6.2f}  {:4.2f} {:4.2f}  {:5.2f} ".format(name, *figures), end="")
        print(*(f"{difference:8.1e}" for difference in compared[name]))
    for name in paths:
        if name.startswith("tfnlp") and not max(compared[name]) < TOLERANCE:
            raise AssertionError(f"{name} does not compute the same: {compared[name]}")


def convert_theirs(folder):
    """Save a classifier of `transformers`, and return {name: path} of files by litert-torch."""
    import transformers

    sizes = {"num_hidden_layers": 6, "hidden_size": 384, "num_attention_heads": 6}
    config = transformers.ModernBertConfig(
        vocab_size=VOCABULARY,
        intermediate_size=576,
        num_labels=CLASSES,
        initializer_range=0.1,  # so that probabilities differ from text to text
        **dict.fromkeys(("pad_token_id", "bos_token_id", "cls_token_id"), 0),
        **dict.fromkeys(("eos_token_id", "sep_token_id"), 1),
        **sizes,
    )
    transformers.set_seed(0)
    transformers.ModernBertForSequenceClassification(config).save_pretrained(folder / "theirs")
    paths = {}
    for attention in ("eager", "sdpa"):
        path = paths[THEIRS.format(attention)] = folder / f"theirs_{attention}.tflite"
        arguments = (CONVERT, folder / "theirs", path, LENGTH, attention)
        command = [FLAGS.litert_torch_python, "-c", *map(str, arguments)]
        subprocess.run(command, capture_output=True, check=True)
    return paths


def convert_ours(folder):
    """Return {name: path} of files that tfnlp makes of the folder "theirs"."""
    from distill.export.conversion import convert_text_model
    from distill.export.options import Export
    from tfnlp.checkpoints import load_model
    from tfnlp.tasks.kinds import CLASSIFIER

    model, paths = load_model(folder / "theirs", "classifier", CLASSES), {}
    for name, length in {"one": LENGTH, "any": None}.items():
        path = paths[f"tfnlp, {name} length"] = folder / f"{name}_length.tflite"
        options = Export("float32", max_length=LENGTH)
        path.write_bytes(convert_text_model(model, CLASSIFIER, options, [length]))
    return paths


def runner(path):
    """Return a function from a number of tokens, others being padding, to the probabilities."""
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter(str(path), num_threads=1).get_signature_runner()
    ids = np.random.default_rng(0).integers(2, VOCABULARY, (1, LENGTH)).astype("int32")
    inputs = {"ids": ids, "mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)}
    inputs = {name: inputs[name] for name in run.get_input_details()}

    def call(tokens):
        inputs["mask"][:] = np.arange(LENGTH) < tokens
        (probabilities,) = run(**inputs).values()
        return probabilities

    return call


def differences(run, expected):
    """Return the largest difference of the probabilities of a text of each length."""
    return [float(np.abs(run(tokens) - expected(tokens)).max()) for tokens in REAL_TOKENS]


if __name__ == "__main__":
    entry_point.run(main)
