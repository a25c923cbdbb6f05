"""Compares .tflite files on one HTML page: score against size and latency.

    python -m recipes.frontier --sweep_dir=runs/sizes --input=test.tsv --output_dir=runs/frontier
    python -m recipes.frontier --models=a.tflite,b.tflite --input=test.tsv \\
        --teacher=runs/teacher/best --output_dir=runs/frontier

Of a sweep whose steps end in export_tflite, the files of a variant's seeds are one point, with
the standard error of its score. --input is a file as the task's training has it, with what is
right. OUTPUT_DIR/frontier.html needs no network: plots with the frontier marked (files that no
other beats in both), the table, and which operators of each file take the time. The table is
printed too, and written to frontier.tsv. Started again, it measures what is not measured yet.
"""

import pathlib

from absl import flags, logging

from distill import reports, runtime
from recipes import common
from tfnlp import pipelines
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import check_writable, write_text

FLAGS = flags.FLAGS
flags.DEFINE_string("sweep_dir", None, "Folder of a sweep, instead of --models.")
flags.DEFINE_list("models", [], "The .tflite files, instead of --sweep_dir.")
flags.DEFINE_string("input", None, "File of inputs with what is right, to score the files on.")
flags.DEFINE_string("text_column", None, "Column of the text, if not as for training.")
flags.DEFINE_string("pair_column", None, "Column of the second text, for pairs.")
flags.DEFINE_string(
    "label_column", None, "Column of what is right; `label` (or `score`) if not given."
)
flags.DEFINE_string(
    "teacher",
    None,
    "A .tflite file, or a model's folder, to count equal answers with; of numbers Pearson's "
    "correlation with its own is given.",
)
flags.DEFINE_string("positive_label", None, "Label of classifiers whose F1 is the score.")
flags.DEFINE_integer("repeats", 50, "Timed runs for each figure.", 1)
flags.DEFINE_string("output_dir", None, "Folder to write frontier.html and frontier.tsv into.")
flags.mark_flags_as_required(["input", "output_dir"])


def teacher_runner():
    """Load the runner of --teacher; return None if it is not given."""
    if not FLAGS.teacher:
        return None
    if FLAGS.teacher.endswith(".tflite"):
        return runtime.load_runner(FLAGS.teacher, num_threads=2)

    return pipelines.load_runner(FLAGS.teacher)


def check_flags():
    """Raise an InputError unless exactly one of --sweep_dir and --models is given."""
    if bool(FLAGS.sweep_dir) == bool(FLAGS.models):
        raise InputError("Give either --sweep_dir or --models.")


def main():

    folder = pathlib.Path(FLAGS.output_dir)
    check_writable(folder / "frontier.html")
    columns = reports.Columns(FLAGS.text_column, FLAGS.pair_column, FLAGS.label_column)
    candidates = (
        reports.find_candidates(FLAGS.sweep_dir)
        if FLAGS.sweep_dir
        else reports.name_candidates(FLAGS.models)
    )

    metric = reports.measure_candidates(
        candidates,
        lambda pipeline: reports.task_of(pipeline).read(FLAGS.input, columns),
        folder / "measured.json",
        teacher_runner(),
        repeats=FLAGS.repeats,
        positive_label=FLAGS.positive_label,
    )
    rows = reports.table_rows(candidates, metric)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip())
    write_text(folder / "frontier.tsv", "".join("\t".join(row) + "\n" for row in rows))
    title = f"{pathlib.Path(FLAGS.input).name}: {len(candidates)} models"
    write_text(folder / "frontier.html", reports.page(candidates, metric, title))
    logging.info("Wrote %s.", folder / "frontier.html")


if __name__ == "__main__":
    common.run(main, check=check_flags)
