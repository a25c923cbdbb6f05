"""Runs a fine-tuned model on texts: an exported .tflite file, or the folder of a model.

    python -m recipes.predict --model=runs/export/model.tflite --text="a fine film"
    python -m recipes.predict --model=runs/entities/best --text="Anna lives in New York."
    python -m recipes.predict --model=runs/answers/best --text="Anna lives in New York." \\
        --question="Where does Anna live?"
    python -m recipes.predict --model=runs/choices/best --text="He ate" --ending="a car." \\
        --ending="an apple."
    python -m recipes.predict --model=runs/student/best --input=dev.tsv --output_dir=runs/said

What the model does is read from it: classes and numbers of texts or pairs, entities (or tags),
answers, choices. --input is a file as the task's training has it, or of texts alone (a .txt
has one on each line, or a tagger's columns); where it says what is right the scores are printed
too, beside those of the commonest label (or the mean), and what is said of which label.
Predictions are printed, or written to OUTPUT_DIR/predictions.tsv; entities and answers, with
their places in the text, to predictions.jsonl.
"""

import pathlib

from absl import flags

from distill import reports, runtime
from recipes import common
from tfnlp import checkpoints, pipelines
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import check_writable

FLAGS = flags.FLAGS
flags.DEFINE_string("model", None, "A .tflite file, or the folder of a model (a run's best/).")
flags.DEFINE_multi_string("text", [], "A text.")
flags.DEFINE_multi_string("pair", [], "The second text of a pair, one for each --text.")
flags.DEFINE_multi_string("question", [], "To an answerer, about --text.")
flags.DEFINE_multi_string("ending", [], "An ending of --text, for a chooser.")
flags.DEFINE_string("input", None, "File of inputs: as for training, or texts alone.")
flags.DEFINE_string("text_column", None, "Column of the text, if not as for training.")
flags.DEFINE_string("pair_column", None, "Column of the second text, for pairs.")
flags.DEFINE_string("question_column", None, "Column of the question; `question` if not given.")
flags.DEFINE_string(
    "prompt_column", None, "Column of a chooser's beginning; `prompt` if not given."
)
flags.DEFINE_list("choice_columns", None, "Columns of the endings; choice0, ... if not given.")
flags.DEFINE_string(
    "label_column", None, "Column of what is right; `label` (or `score`) if there; empty for none."
)
flags.DEFINE_bool(
    "tagged",
    None,
    "Whether each line of a tagger's --input has a word and its tag, and not a text; found out if "
    "not given.",
)
flags.DEFINE_string("positive_label", None, "Label of a classifier whose F1 is a score too.")
flags.DEFINE_string("output_dir", None, "Folder to write predictions into.")
flags.DEFINE_integer("batch_size", 32, "Texts in a batch, of a folder's model.", 1)
flags.DEFINE_integer("num_threads", 1, "Threads of LiteRT, for a .tflite file.", 1)
flags.mark_flag_as_required("model")


def model_of_flags():
    """Return the kind, labels and settings of --model, and a function that loads its runner."""
    if FLAGS.model.endswith(".tflite") or pathlib.Path(FLAGS.model).is_file():
        runner = runtime.load_runner(FLAGS.model, FLAGS.num_threads)
        return runner.kind, runner.labels, runner.settings, lambda: runner
    common.import_tensorflow_quietly()

    kind, labels = pipelines.read_kind(FLAGS.model), checkpoints.read_labels(FLAGS.model)
    settings = checkpoints.read_task_settings(FLAGS.model)
    return kind, labels, settings, lambda: pipelines.load_runner(FLAGS.model, FLAGS.batch_size)


def main():

    if bool(FLAGS.text or FLAGS.question or FLAGS.ending) == bool(FLAGS.input):
        raise InputError("Give either --text or --input.")
    if FLAGS.output_dir:
        check_writable(pathlib.Path(FLAGS.output_dir) / "summary.json")
    kind, labels, settings, load = model_of_flags()
    task = reports.prediction_task(kind, labels, settings, FLAGS.positive_label)
    if FLAGS.input:
        columns = reports.Columns(
            FLAGS.text_column,
            FLAGS.pair_column,
            FLAGS.label_column,
            FLAGS.question_column,
            FLAGS.prompt_column,
            FLAGS.choice_columns,
            FLAGS.tagged,
        )
        inputs = task.read(FLAGS.input, columns)
    else:
        inputs = task.inputs_of(FLAGS.text, FLAGS.pair, FLAGS.question, FLAGS.ending)
    runner = load()  # last, so that bad input is reported at once
    predictions = reports.predict_inputs(runner, inputs)
    if FLAGS.output_dir:
        reports.write_predictions(
            FLAGS.output_dir, runner, inputs, predictions, FLAGS.positive_label
        )
    else:
        reports.print_predictions(runner, inputs, predictions, FLAGS.positive_label)


if __name__ == "__main__":
    common.run(main, tensorflow=False)
