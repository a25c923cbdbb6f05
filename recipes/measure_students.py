"""Measures the times of a teacher's parts on a phone, for find_student.

    python -m recipes.measure_students --teacher_dir=runs/teacher/best --train=train.tsv \\
        --size_mb=12 --fixed_lengths=32 --fixed_only --output_dir=runs/costs

writes .tflite files of some layers, heads, units and tokens of the teacher to OUTPUT_DIR/costs,
with their times on this machine in costs.tsv. Run each NAME.tflite on the phone, by LiteRT's
benchmark_model with --num_threads=1, and keep what it prints as NAME.txt (or benchmark.json of
recipes.benchmark_tflite as NAME.json). Then

    python -m recipes.measure_students ... --results=logs --device="Pixel 9"

writes the table of these times, to give find_student as --cost_table, with the same --size_mb and
numbers to try.
"""

import pathlib

from absl import flags

from distill import search
from recipes.flags import dataclass_flags, student_space_flags
from recipes.shell import entry_point
from recipes.shell.command_line import refuse_without
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
student_space_flags.define_flags(required=["train"])
dataclass_flags.define(search.Budget, "size_mb")
FLAGS["size_mb"].help = "MB (1e6 bytes) of the file to find, which decides the numbers of tokens."
flags.DEFINE_string("output_dir", None, "Folder to write costs/ into.")
flags.mark_flag_as_required("output_dir")
flags.DEFINE_integer("max_length", 128, "Longest input in tokens.", 3)
flags.DEFINE_string("results", None, "Folder of NAME.txt or NAME.json for each NAME.tflite.")
flags.DEFINE_string("device", None, "Name of the phone of --results.")


def main():
    refuse_without(["device"], "results")
    if FLAGS.results and not FLAGS.device:
        raise InputError(f"results={FLAGS.results} are of a phone; name it by `device`.")
    logs = FLAGS.results and [*pathlib.Path(FLAGS.results).glob("*.txt")]
    if logs and not (FLAGS.fixed_only and len(FLAGS.fixed_lengths or ()) == 1):
        raise InputError(
            f"benchmark_model, which wrote {logs[0]}, runs one token of a file of any length; "
            "give one of `fixed_lengths`, and `fixed_only`, to both commands."
        )
    finder = student_space_flags.start_finder()
    table = finder.measure(FLAGS.device, FLAGS.results)
    print(table.describe(), f"They are in {finder.folder / search.COSTS}.", sep="\n")


if __name__ == "__main__":
    entry_point.run(main)
