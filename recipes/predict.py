"""Runs a fine-tuned model on texts: an exported .tflite file, or the folder of a model.

    python -m recipes.predict --model=runs/export/model.tflite --text="a fine film"
    python -m recipes.predict --model=runs/entities/best --text="Anna lives in New York."
    python -m recipes.predict --model=runs/answers/best --text="Anna lives in New York." \\
        --question="Where does Anna live?"
    python -m recipes.predict --model=runs/choices/best --text="He ate" --ending="a car." \\
        --ending="an apple."
    python -m recipes.predict --model=runs/student/best --input=dev.tsv --output_dir=runs/said
    python -m recipes.predict --model=runs/student/best --input=dev.parquet --probabilities \\
        --output=said.parquet

The task is read from the model: classification, regression, tagging, question answering or
multiple choice. --input is a file in the format of the task's recipe (tables are TSV, CSV, JSON,
JSON Lines, Parquet, Arrow, and folders that Hugging Face's datasets saved), or of texts alone (a
.txt with a text on each line). For labelled files the scores are printed too, with those of the
commonest label (or the mean) and the confusion matrix. Predictions are printed, or written to
OUTPUT_DIR/predictions.tsv, and entities and answers with their offsets to predictions.jsonl.
--output is one table of the input's columns, then those of the predictions, from `prediction` on:
a .csv, .tsv, .jsonl or .parquet, or without an ending a folder that datasets loads.
With --shard_mb there is a file for each part of the input, whose files may exceed memory:
predictions-00000.tsv, or OUTPUT-00000 with its ending, and so on. A part is written whole, so that
the same command resumes a killed run; with --runner an Apache Beam pipeline makes the same files.
"""

import functools
import os
import pathlib
import sys

from absl import flags

from distill import reports, runtime
from recipes.flags import data_flags, dataclass_flags, runner_flags
from recipes.shell import entry_point
from recipes.shell.command_line import refuse_beside, refuse_without, require_one
from recipes.shell.input_checks import names_file
from tfnlp import checkpoints, pipelines
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
flags.DEFINE_string("model", None, "A .tflite file, or the folder of a model (best/ of a run).")
flags.DEFINE_multi_string("text", [], "A text.")
flags.DEFINE_multi_string("pair", [], "Second text of a pair, one for each --text.")
flags.DEFINE_multi_string("question", [], "Question about --text, for question answering.")
flags.DEFINE_multi_string("ending", [], "A continuation of --text, for multiple choice.")
flags.DEFINE_list(
    "input",
    None,
    "File of inputs, in the format of the task's recipe or texts alone; with --shard_mb files, or "
    "quoted patterns of files.",
)
data_flags.define_column_flags()
data_flags.define_answer_column_flags("question", "prompt", "choices", "tagged")
flags.DEFINE_string("positive_label", None, "Label whose F1 is reported.")
flags.DEFINE_bool(
    "probabilities",
    False,
    "Give the probability of each label; of one label a text --label_columns of "
    "finetune_classifier reads them.",
)
flags.DEFINE_string("output_dir", None, "Folder to write predictions into.")
flags.DEFINE_string(
    "output",
    None,
    "Table to write: .csv, .tsv, .jsonl, .parquet, or a folder that datasets loads.",
)
flags.DEFINE_integer("batch_size", 32, "Texts in a batch, for the folder of a model.", 1)
flags.DEFINE_integer("num_threads", 1, "Threads of LiteRT, for a .tflite file.", 1)
flags.DEFINE_float(
    "shard_mb", None, "Megabytes of --input to predict at once, a file of predictions each.", 1e-6
)
runner_flags.define()
flags.mark_flag_as_required("model")

# Files of predictions, their scores, and the parts of --shard_mb.
WRITTEN = ("predictions*", "summary.json", "settings.json", "part-*.json")


def check_output_dir():
    """Raise an InputError if --output_dir has other files; hidden ones, as of a kill, may be."""
    for path in sorted(pathlib.Path(FLAGS.output_dir).glob("[!.]*")):
        if not any(path.match(pattern) for pattern in WRITTEN):
            raise InputError(
                f"output_dir={FLAGS.output_dir} has {path.name}, which is no file of predictions; "
                "give another folder."
            )


def model_of_flags():
    """Return the kind, labels and settings of --model, and a function that loads its runner."""
    if names_file():
        refuse_beside(["batch_size"], f"model={FLAGS.model}, which reads a text at a time")
        runner = runtime.load_runner(FLAGS.model, FLAGS.num_threads)
        return runner.kind, runner.labels, runner.settings, lambda: runner
    refuse_beside(["num_threads"], f"model={FLAGS.model}, which is no .tflite file")
    entry_point.load_tensorflow()
    kind, labels = pipelines.read_kind(FLAGS.model), checkpoints.read_labels(FLAGS.model)
    settings = checkpoints.read_task_settings(FLAGS.model)
    load = functools.cache(lambda: pipelines.load_runner(FLAGS.model, FLAGS.batch_size))
    if kind.labelled and labels is None:  # `transformers` leaves out names of two classes
        labels = load().labels
    return kind, labels, settings, load


def main():
    require_one("input", "text", "question", "ending")
    map_shards = runner_flags.map_shards("shard_mb")
    refuse_without(["shard_mb"], "input")
    if FLAGS.output:
        refuse_beside(["output_dir"], f"output={FLAGS.output}, the table")
        pipelines.check_table(FLAGS.output)
    else:
        refuse_without(["shard_mb"], "output_dir")
    if FLAGS.input and len(FLAGS.input) > 1 and not FLAGS.shard_mb:
        raise InputError(
            f"input={','.join(FLAGS.input)} are several files, which need --shard_mb."
        )
    if FLAGS.output_dir:
        check_output_dir()
    kind, labels, settings, load = model_of_flags()
    columns = dataclass_flags.read(pipelines.Columns)
    scores = FLAGS.positive_label, FLAGS.probabilities
    task = pipelines.prediction_task(kind, labels, settings, *scores)
    if FLAGS.shard_mb:
        model = runner_flags.absolute(FLAGS.model)
        sizes = FLAGS.batch_size, FLAGS.num_threads
        predictor = reports.Predictor(model, task, columns, *sizes)
        folder, table = FLAGS.output_dir, None
        if FLAGS.output:
            folder, table = os.path.split(os.path.abspath(FLAGS.output))
        options = {"map_shards": map_shards, "table": table}
        reports.predict_files(predictor, FLAGS.input, folder, FLAGS.shard_mb, **options)
        return
    path = FLAGS.input[0] if FLAGS.input else None
    if path:
        inputs = task.read(path, columns)
    else:
        inputs = task.inputs_of(FLAGS.text, FLAGS.pair, FLAGS.question, FLAGS.ending)
    table = pipelines.input_table(task, inputs, path, columns) if FLAGS.output else None
    runner = load()  # last, so that bad input is reported at once
    predictions = pipelines.predict_inputs(runner, inputs)
    if table is not None:
        pipelines.write_table(FLAGS.output, table, task, predictions)
        print(f"Wrote {FLAGS.output}.", file=sys.stderr)
        summary = pipelines.summarise(runner, inputs, predictions, task)
        pipelines.print_summary(summary, runner.max_length)
    elif FLAGS.output_dir:
        pipelines.write_predictions(FLAGS.output_dir, runner, inputs, predictions, task)
    else:
        pipelines.print_predictions(runner, inputs, predictions, task)


if __name__ == "__main__":
    entry_point.run(main)
