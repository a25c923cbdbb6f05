"""Checks of the files and columns that flags name, before anything else is read."""

import glob
import os
import pathlib

from absl import flags

from recipes.shell.command_line import recipe_flags
from tfnlp import text
from tfnlp.utils.errors import ColumnError, InputError
from tfnlp.utils.files import check_folder
from tfnlp.utils.hub import check_source, is_remote

FLAGS = flags.FLAGS
# Flags of example files, and of all files; folder flags end in _dir.
EXAMPLES = ("train", "dev", "further_dev", "test", "input", "texts", "corpus")
FILES = {*EXAMPLES, "vocabulary_text", "calibration_text", "check_text", "golden"}
FILES |= {"embeddings", "entity_vectors", "cost_table"}
# Flags of a folder to load, or of a name on the Hub.
MODELS = ("model_dir", "generator_dir", "student_dir", "teacher_dir", "chooser_dir")
MODELS += ("tokenizer_dir",)
# File flags of columns outside example files; --translation_column is of an output file.
_FILES_OF_COLUMN = {
    "calibration_column": ("calibration_text",),
    "calibration_pair_column": ("calibration_text",),
    "check_column": ("check_text", "golden"),
    "check_pair_column": ("check_text", "golden"),
    "reference_column": ("references",),
    "hypothesis_column": ("hypotheses",),
    "translation_column": (),
    "train_columns": ("train",),
    "label_columns": ("train",),  # others may have their labels in one column
}
# The flags that name a column of this name, where they are not given.
_DEFAULTS = {
    "sentence": "text_column",
    "sentence1": "text_column",
    "context": "text_column",
    "question": "question_column",
    "prompt": "prompt_column",
    "score": "score_column",
}
# Columns that do not apply if two parallel text files are given.
_OF_ONE_TABLE = ("source_column", "target_column")


def check_files():
    """Raise an InputError for a missing file or model, an address, or a folder that is closed."""
    # Of several workers one alone writes.
    several = "strategy" in FLAGS and FLAGS.strategy == "multi_worker"
    if "output_dir" in FLAGS and FLAGS.output_dir and not several:
        check_folder(FLAGS.output_dir)
    for name in sorted(recipe_flags()):
        is_model = name in MODELS
        for path in _as_list(FLAGS[name].value) if name in FILES or name.endswith("_dir") else ():
            parts = path.split(",")  # of --teacher_dir, which may list several
            if any("://" in part and not (is_model and is_remote(part)) for part in parts):
                raise InputError(
                    f"{name}={path} is an address; mount it as a folder, which all workers see at "
                    "the same path, and give that."
                )
    for name in sorted(FILES & recipe_flags().keys()):
        for path in _files(name):
            if not os.path.exists(path) and not glob.has_magic(path):
                raise InputError(f"{path} does not exist; check the path.")
    for name in sorted({*MODELS} & recipe_flags().keys()):
        for sources in _as_list(FLAGS[name].value):
            for source in sources.split(",") if name == "teacher_dir" else [sources]:
                if not source.endswith(".tflite"):  # those that read none say that it is no folder
                    check_source(source)


def check_columns():
    """Raise an InputError if a table lacks a column named by a flag.

    Only the header or first object is read.
    """
    for path, columns in _columns_of_files().items():
        if os.path.exists(path) and text.has_columns(pathlib.Path(path)):
            next(text.read_columns(path, columns, lists=columns))


def names_file(flag="model"):
    """Return whether a flag's model is a .tflite file, there or not, and no folder."""
    path = FLAGS[flag].value
    return path.endswith(".tflite") or pathlib.Path(path).is_file()


def with_column_flag(error):
    """Return an error's message; prefix a missing column with the flag that names it."""
    if isinstance(error, ColumnError):
        for flag, columns in _named_columns().items():
            if error.column in columns:
                return f"{flag}={error.column}: {error}"
        flag = _DEFAULTS.get(error.column)
        if flag in FLAGS and FLAGS[flag].value is None:
            return f"{flag}={error.column}: {error}"
    return str(error)


def _columns_of_files():
    """Return {path: columns} for the files and columns named by the recipe's flags."""
    columns, named = {}, _named_columns()
    if "label_columns" in named:
        named.pop("label_column")  # which files have it, their reading tells
    examples = {*EXAMPLES} - ({"train"} if "train_columns" in named else set())
    for flag, names in named.items():
        for file in _FILES_OF_COLUMN.get(flag, examples):
            paths = _files(file) if file in FLAGS else []
            if len(paths) == 1 or flag not in _OF_ONE_TABLE:
                for path in paths:
                    columns.setdefault(path, []).extend(names)
    return columns


def _named_columns():
    """Return {flag: columns} for the recipe's flags that name columns."""
    names = [name for name in recipe_flags() if name.endswith(("_column", "_columns"))]
    return {name: _as_list(FLAGS[name].value) for name in names if FLAGS[name].value}


def named_files(flag):
    """Return {name: files} of a flag of a list of NAME=FILE.

    Raises:
        InputError: for an entry without a name, or with one that figures cannot have.
    """
    files = {}
    for entry in _as_list(FLAGS[flag].value):
        name, _, path = entry.partition("=")
        if not (path and name.isidentifier()) or "baseline" in name:
            raise InputError(
                f"{flag}={entry} must be NAME=FILE, with a name of letters, digits and _ without "
                "'baseline', such as mismatched=dev_mismatched.tsv."
            )
        files.setdefault(name, []).append(path)
    return files


def _files(flag):
    """Return the files that a flag names, a list."""
    if flag == "further_dev":
        return [path for paths in named_files(flag).values() for path in paths]
    return _as_list(FLAGS[flag].value)


def _as_list(value):
    """Return a flag's value as a list, empty if the flag is not given."""
    return value if isinstance(value, list) else [value] if value else []
