"""Compares .tflite files on one HTML page: score against size and latency.

    python -m recipes.frontier --sweep_dir=runs/sizes --input=test.tsv --output_dir=runs/frontier
    python -m recipes.frontier --models=a.tflite,b.tflite --input=test.tsv \\
        --teacher=runs/teacher/best --output_dir=runs/frontier

In a sweep whose steps end in export_tflite, the files of a variant's seeds are one point, with the
standard error of its score. --input is a labelled file in the format of the task's recipe.
OUTPUT_DIR/frontier.html needs no network: it has plots with the Pareto frontier, the table, and
the answers of each file. The table is printed too, and written to frontier.tsv. The same command
only measures files that are not measured yet.
"""

import pathlib

from absl import flags, logging

from distill import reports, runtime
from recipes.flags import data_flags, dataclass_flags
from recipes.shell import entry_point
from recipes.shell.command_line import require_one
from tfnlp import pipelines
from tfnlp.utils.files import write_text
from tfnlp.utils.formatting import aligned

FLAGS = flags.FLAGS
flags.DEFINE_string("sweep_dir", None, "Folder of a sweep, instead of --models.")
flags.DEFINE_list("models", [], "The .tflite files, instead of --sweep_dir.")
flags.DEFINE_string("input", None, "Labelled file to score the models on.")
data_flags.define_column_flags()
data_flags.define_answer_column_flags()
flags.DEFINE_string(
    "teacher",
    None,
    "A .tflite file or a model's folder to compare answers with: the share of equal ones, or "
    "Pearson's correlation of numbers.",
)
flags.DEFINE_string("positive_label", None, "Label of classifiers whose F1 is the score.")
flags.DEFINE_integer("repeats", 50, "Timed runs of each measurement.", 1)
flags.DEFINE_string("output_dir", None, "Folder to write frontier.html and frontier.tsv into.")
flags.mark_flags_as_required(["input", "output_dir"])


def teacher_runner():
    """Load the runner of --teacher; return None if it is not given."""
    if FLAGS.teacher and FLAGS.teacher.endswith(".tflite"):
        return runtime.load_runner(FLAGS.teacher, num_threads=2)
    return FLAGS.teacher and pipelines.load_runner(FLAGS.teacher)


def main():
    require_one("models", "sweep_dir")
    folder = pathlib.Path(FLAGS.output_dir)
    entry_point.load_tensorflow()
    columns = dataclass_flags.read(pipelines.Columns)
    candidates = (
        reports.find_candidates(FLAGS.sweep_dir)
        if FLAGS.sweep_dir
        else reports.name_candidates(FLAGS.models)
    )
    metric = reports.measure_candidates(
        candidates,
        lambda pipeline: pipelines.task_of(pipeline).read(FLAGS.input, columns),
        folder / "measured.json",
        teacher_runner(),
        repeats=FLAGS.repeats,
        positive_label=FLAGS.positive_label,
    )
    rows = reports.table_rows(candidates, metric)
    print(*aligned(rows), sep="\n")
    write_text(folder / "frontier.tsv", "".join("\t".join(row) + "\n" for row in rows))
    title = f"{pathlib.Path(FLAGS.input).name}: {len(candidates)} models"
    write_text(folder / "frontier.html", reports.page(candidates, metric, title))
    logging.info("Wrote %s.", folder / "frontier.html")


if __name__ == "__main__":
    entry_point.run(main)
