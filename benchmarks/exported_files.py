"""Costs and gains of fixed lengths, and of a tokenizer in the graph, in an exported file.

    python -m benchmarks.exported_files --model_dir=runs/student/best --input=SST2/dev.tsv \\
        --output_dir=runs/exported

A classifier is exported with a signature of any length, with those of --fixed_lengths beside it,
and with these alone. For each file the program prints its size, the operators of each signature,
and the parts of its first one that XNNPACK runs. The first and the last file are then timed on one
thread: at each of the lengths, and with lengths that change from call to call. Rounds alternate;
figures are medians. For a classifier with WordPiece, the file that takes strings is compared with
the one that takes ids on --input.
"""

import pathlib

import numpy as np
from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Folder of a classifier.")
flags.DEFINE_string("input", None, "File of texts, for the tokenizer in the graph.")
flags.DEFINE_string("text_column", "sentence", "Column of the text.")
flags.DEFINE_string("output_dir", None, "Folder for the files and exported.json.")
flags.DEFINE_list("fixed_lengths", ["16", "32", "64", "128"], "Lengths to export and to time.")
flags.DEFINE_list("mixed_lengths", ["16", "60", "30", "100", "20"], "Of texts one after another.")
flags.DEFINE_integer("count", 1000, "Texts of --input to compare.", 1)
flags.DEFINE_integer("repeats", 50, "Timed runs of each in a round.", 1)
flags.DEFINE_integer("rounds", 5, "Rounds.", 1)
flags.mark_flags_as_required(["model_dir", "input", "output_dir"])

OPEN, BESIDE, FIXED = "any length", "fixed ones beside it", "fixed lengths alone"


def main():
    entry_point.load_tensorflow()
    from distill.runtime import load_runner
    from tfnlp.checkpoints import load_model, read_labels
    from tfnlp.text import WordPieceTokenizer, load_tokenizer, read_examples
    from tfnlp.utils.files import write_json

    folder = pathlib.Path(FLAGS.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    fixed, mixed = (
        [int(n) for n in given] for given in (FLAGS.fixed_lengths, FLAGS.mixed_lengths)
    )
    texts = read_examples(FLAGS.input, FLAGS.text_column, label_column=None).texts[: FLAGS.count]
    tokenizer, labels = load_tokenizer(FLAGS.model_dir), read_labels(FLAGS.model_dir)
    exported = load_model(FLAGS.model_dir, "classifier"), tokenizer, labels
    paths = export_files(*exported, folder, fixed)
    figures = {"files": {name: describe(path) for name, path in paths.items()}}
    for name, found in figures["files"].items():
        operators = ", ".join(map(str, found["operators"]))
        print(f"{name:22} {found['size_mb']:6.2f} MB  operators {operators}  ", end="")
        print(f"parts for XNNPACK {found['parts']}")
    runners = {name: load_runner(paths[name]) for name in (OPEN, FIXED)}
    figures["latency_ms"] = time_lengths(runners, fixed)
    for length, ms in figures["latency_ms"].items():
        print(
            f"{length:>4} tokens: any length {ms[OPEN]:.2f} ms, fixed {ms[FIXED]:.2f} ms, ", end=""
        )
        print(f"{ms[OPEN] / ms[FIXED]:.2f} of it")
    figures["mixed"] = time_mixed(runners, mixed)
    for name, ratio in figures["mixed"].items():
        print(f"{name}: lengths that change take {ratio:.2f} of equal ones")
    if isinstance(tokenizer, WordPieceTokenizer):
        figures["strings"] = compare_strings(*exported, folder, paths[OPEN], texts)
        print(
            "tokenizer in the graph: {same} of {texts} labels, ".format(**figures["strings"]),
            end="",
        )
        print("probabilities apart by at most {apart:.2g}".format(**figures["strings"]))
    write_json(folder / "exported.json", figures)


def export_files(model, tokenizer, labels, folder, lengths):
    """Export int8 files with any length, with fixed lengths too, and with these only.

    Returns:
        {name: path}.
    """
    from distill.export.options import Export
    from distill.export.tflite import export_tflite

    options = {
        OPEN: {},
        BESIDE: {"fixed_lengths": lengths},
        FIXED: {"fixed_lengths": lengths, "fixed_only": True},
    }
    paths = {name: folder / f"{name.replace(' ', '_')}.tflite" for name in options}
    for name, path in paths.items():
        most = min(model.text_config.max_length or 512, max(lengths))
        export_tflite(model, path, tokenizer, labels, Export(max_length=most, **options[name]))
    return paths


def describe(path):
    """Return a file's size, the operators of each signature, and its parts for XNNPACK."""
    from ai_edge_litert import schema_py_generated as schema

    from benchmarks.operator_profile import profile_operators

    content = path.read_bytes()
    model = schema.Model.GetRootAs(content)
    operators = [model.Subgraphs(i).OperatorsLength() for i in range(model.SubgraphsLength())]
    # In a file with fixed lengths only, the first signature has the largest length.
    parts = profile_operators(path, max(map(int, FLAGS.fixed_lengths)), runs=5)["pieces"]
    return {"size_mb": len(content) / 1e6, "operators": operators, "parts": parts}


def time_lengths(runners, lengths):
    """Return {length: {name: median of the rounds' medians, in milliseconds}}."""
    from distill.reports.latency import latencies

    rounds = {length: {name: [] for name in runners} for length in lengths}
    for length in lengths:
        for _ in range(FLAGS.rounds):
            for name, runner in runners.items():
                found = latencies(runner, [length], FLAGS.repeats)
                rounds[length][name].append(found[length])
    return {
        length: {name: float(np.median(ms)) for name, ms in found.items()}
        for length, found in rounds.items()
    }


def time_mixed(runners, lengths):
    """Return {name: time with lengths that change each call, over that with equal lengths}."""
    from distill.reports.latency import mixed_latencies

    ratios = {name: [] for name in runners}
    for _ in range(FLAGS.rounds):
        for name, runner in runners.items():
            mixed, equal = mixed_latencies(runner, lengths, FLAGS.repeats)
            ratios[name].append(mixed / equal)
    return {name: float(np.median(found)) for name, found in ratios.items()}


def compare_strings(model, tokenizer, labels, folder, path, texts):
    """Compare the file that takes strings with the one that takes ids.

    Returns:
        The number of texts, that of equal labels, and the largest difference of a probability.
    """
    from distill.export.options import Export
    from distill.export.tflite import export_tflite
    from distill.runtime import StringClassifier, load_runner

    of_strings, runner = folder / "strings.tflite", load_runner(path)
    options = {"max_length": runner.max_length, "tokenizer_in_graph": True}
    export_tflite(model, of_strings, tokenizer, labels, Export(**options))
    answers = zip(
        runner.classify(texts), StringClassifier(of_strings).classify(texts), strict=True
    )
    same, apart = 0, 0.0
    for expected, found in answers:
        same += expected.label == found.label
        both = zip(*(x.probabilities.values() for x in (expected, found)), strict=True)
        apart = max(apart, *(abs(p - q) for p, q in both))
    return {"texts": len(texts), "same": same, "apart": apart}


if __name__ == "__main__":
    entry_point.run(main)
