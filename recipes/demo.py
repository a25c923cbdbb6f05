"""The whole road on a corpus of its own: teacher, student, .tflite, in a few minutes.

    python -m recipes.demo --output_dir=demo

writes reviews in English and Korean from a grammar, fine-tunes a teacher on them, distils it,
exports the student, runs the file, and prints one table. Every step is a recipe that also
works alone; its command line is shown.
"""

import json
import pathlib
import subprocess
import sys

from absl import flags

from recipes import common

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", "demo", "Folder for corpus, runs and file.")


def main():
    from recipes.demo_corpus import write_demo_corpus

    folder = pathlib.Path(FLAGS.output_dir)
    data, teacher, student = folder / "data", folder / "teacher", folder / "student"
    model, benchmark = folder / "model.tflite", folder / "benchmark"
    write_demo_corpus(data)
    splits = [f"--{name}={data / name}.tsv" for name in ("train", "dev", "test")]
    _recipe(
        "finetune_classifier",
        *splits,
        "--num_layers=4",
        "--hidden_dim=128",
        "--vocabulary_size=600",
        "--epochs=5",
        "--learning_rate=5e-4",
        f"--output_dir={teacher}",
    )
    _recipe(
        "distill_classifier",
        f"--teacher_dir={teacher / 'best'}",
        *splits,
        "--num_layers=2",
        "--hidden_state_weight=0.1",
        "--attention_weight=0.01",
        "--epochs=6",
        "--learning_rate=5e-4",
        f"--output_dir={student}",
    )
    _recipe("export_tflite", f"--model_dir={student / 'best'}", f"--output_dir={folder}")
    _recipe(
        "benchmark_tflite",
        f"--model={model}",
        f"--model_dir={student / 'best'}",
        f"--input={data / 'test.tsv'}",
        f"--output_dir={benchmark}",
    )
    _recipe(
        "classify",
        f"--model={model}",
        f"--input={data / 'test.tsv'}",
        "--label_column=label",
        f"--output_dir={folder / 'answers'}",
    )
    _print_table(teacher, student, benchmark, folder / "answers", model)


def _recipe(name, *flags_given):
    command = [sys.executable, "-m", f"recipes.{name}", *flags_given]
    print(f"\n$ python -m recipes.{name} {' '.join(flags_given)}", flush=True)
    if subprocess.run(command, check=False).returncode:
        sys.exit(f"The demo stopped: recipes.{name} failed; its message is above.")


def _print_table(teacher, student, benchmark, answers, model):
    rows = [("", "accuracy", "parameters", "size", "latency at 32 tokens", "agreement")]
    for name, folder in (("teacher", teacher), ("student", student)):
        figures = json.loads((folder / "figures.json").read_text())
        size = (folder / "best" / "model.safetensors").stat().st_size / 1e6
        accuracy = f"{figures['test_accuracy']:.2%}"
        rows.append((name, accuracy, f"{figures['parameters']:,}", f"{size:.2f} MB", "", ""))
    figures = json.loads((benchmark / "benchmark.json").read_text())
    summary = json.loads((answers / "summary.json").read_text())
    rows.append(
        (
            "student, int8 .tflite",
            f"{summary['accuracy']:.2%}",
            "",
            f"{figures['size_mb']:.2f} MB",
            f"{figures['latency_ms']['1']['32']:.2f} ms",
            f"{figures['agreement']:.2%}",
        )
    )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
    print(f"\nThe file is {model}; model cards and curves are in {teacher} and {student}.")


if __name__ == "__main__":
    common.run(main)
