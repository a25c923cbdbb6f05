"""Flags of a space of students and of the files that are timed."""

import pathlib

from absl import flags

from distill import export, learning, search
from recipes.flags import data_flags, dataclass_flags
from recipes.shell import entry_point
from recipes.shell.command_line import group
from tfnlp import checkpoints, pipelines, tasks, training
from tfnlp.tasks.kinds import EMBEDDER
from tfnlp.tasks.vector_settings import VectorSettings
from tfnlp.utils.errors import ColumnError, InputError

FLAGS = flags.FLAGS


def define_flags(required=("train", "dev")):
    """Define the flags of the teacher, its data, the space of students and their files.

    Args:
        required: splits that must be given.
    """
    flags.DEFINE_string("teacher_dir", None, "Folder of the teacher, fine-tuned for a task.")
    flags.mark_flag_as_required("teacher_dir")
    data_flags.define_split_flags(required=required)
    data_flags.define_column_flags()
    data_flags.define_answer_column_flags("prompt", "choices")
    with group("Space"):
        dataclass_flags.define(search.SearchSpace)
        flags.DEFINE_integer("tokens", 32, "Tokens of the text that is timed.", 3)
    with group("File"):
        names = ("quantization", "fixed_only")
        dataclass_flags.define(export.Export, *names, fixed_lengths=None)


def start_finder(start_run=None):
    """Read the data and load the teacher; return the `StudentFinder` of the flags.

    Args:
        start_run: as `StudentFinder` takes it; None where nothing is trained.
    """
    options = dataclass_flags.read(export.Export, max_length=FLAGS.max_length)
    lengths = {"max_length": FLAGS.max_length}
    if options.fixed_only and options.fixed_lengths:
        lengths["fixed_lengths"] = max(options.fixed_lengths)
    for name, length in lengths.items():
        if FLAGS.tokens > length:
            raise InputError(
                f"tokens={FLAGS.tokens} of the text to time are more than {name}={length}, to "
                f"which it is cut; give fewer, or a higher `{name}`."
            )
    if FLAGS.quantization == "static_int8":
        raise InputError(
            "quantization=static_int8 is calibrated on texts; find a student by int8, and export "
            "its best/ by export_tflite with `calibration_text`."
        )
    folder = FLAGS.teacher_dir
    kind, columns = pipelines.read_kind(folder), dataclass_flags.read(pipelines.Columns)
    settings = checkpoints.read_task_settings(folder)
    if kind == EMBEDDER:
        task, splits = read_texts(settings, columns)
    else:
        reader = pipelines.prediction_task(kind, checkpoints.read_labels(folder), settings)
        splits = data_flags.read_splits(lambda path: reader.read_labelled(path, columns))
        task = reader.task()
        learning.check_teacher_reads(folder, splits["train"])
    entry_point.load_tensorflow()
    return search.StudentFinder(
        teacher_dir=folder,
        task=task,
        data=training.Splits.from_parts(splits, FLAGS.max_length),
        folder=pathlib.Path(FLAGS.output_dir),
        start_run=start_run,
        space=dataclass_flags.read(search.SearchSpace),
        budget=dataclass_flags.read(search.Budget),
        options=options,
        tokens=FLAGS.tokens,
    )


def read_texts(settings, columns):
    """Return the task of an embedder, and {split: examples}: texts, and pairs to score.

    Args:
        settings: of the teacher's folder.
        columns: a `Columns`.
    """
    entry_point.load_tensorflow()
    pair = columns.text or "sentence1", columns.pair or "sentence2"
    loss = "cosent" if columns.label else "ranking"  # which decides the score alone
    prompts = tasks.prompts_of(settings)
    task = learning.VectorImitation(VectorSettings(loss=loss, num_texts=2), *prompts)
    try:
        splits = data_flags.read_splits(
            lambda path: tasks.read_text_groups(path, pair, columns.label),
            lambda path: task.with_prompts(learning.read_unlabelled([path], pair)),
        )
    except ColumnError as e:  # as of a file of labels, for an encoder that was not fine-tuned
        message = f"teacher_dir={FLAGS.teacher_dir} gives sentence vectors, but {e}"
        raise ColumnError(message, e.column) from e
    return task, splits
