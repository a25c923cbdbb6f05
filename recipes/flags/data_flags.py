"""Flags of data files, and reading of the files."""

import itertools
import os

from absl import flags, logging

from recipes.flags import dataclass_flags
from recipes.shell.command_line import define_alias, group, refuse_without
from recipes.shell.input_checks import named_files
from tfnlp import checkpoints, corpora, pipelines, text
from tfnlp.tasks.kinds import EMBEDDER, TASK_HEADS
from tfnlp.text.reading.lines import holds_nothing
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS


@group("Data")
def define_split_flags(train="Training file.", required=("train", "dev")):
    """Define the flags of the training, dev and test files; `train` is the help of --train."""
    flags.DEFINE_string("train", None, train)
    flags.DEFINE_string("dev", None, "File to evaluate on after each epoch, to select the best.")
    define_further_dev_flag()
    flags.DEFINE_string("test", None, "File to evaluate the best epoch on, if given.")
    flags.mark_flags_as_required(required)


def define_further_dev_flag():
    """Define --further_dev, the files of dev sets by name."""
    flags.DEFINE_list(
        "further_dev",
        None,
        "Further sets to evaluate on beside --dev, which alone selects the best epoch: NAME=FILE "
        "each, such as mismatched=dev_mismatched.tsv, whose figures are called val_NAME/...",
    )


def define_document_flags(documents, *names):
    """Define the flags that split unlabelled files into documents, with --documents' default.

    Args:
        documents: the default of --documents.
        names: of further fields of `CorpusSettings`.
    """
    names = ("documents", "text_column", *names)
    dataclass_flags.define(corpora.CorpusSettings, *names, documents=documents)


@group("Data")
def define_column_flags(default=None):
    """Define the flags of the columns of texts and second texts, with --text_column's default."""
    dataclass_flags.define(pipelines.Columns, "pair", text=default)
    if default:
        FLAGS["text_column"].help = "Column of the text."


@group("Data")
def define_answer_column_flags(*names):
    """Define the flags of the column of the labels or numbers that are right, and of others."""
    dataclass_flags.define(pipelines.Columns, "label", *names)
    define_alias("score_column", "label_column")


def read_splits(read, read_train=None):
    """Return {split: examples} of --train, --dev, --further_dev and --test.

    A further dev set is called "dev_NAME".

    Args:
        read: function of a path to examples.
        read_train: the same for --train; `read` where None.
    """
    paths = {"train": FLAGS.train, "dev": FLAGS.dev}
    for name, files in further_dev().items():
        if isinstance(FLAGS.dev, str) and len(files) > 1:
            raise InputError(f"further_dev={name}={files[1]}: {name} has a file already.")
        paths[f"dev_{name}"] = files[0] if isinstance(FLAGS.dev, str) else files
    paths["test"] = FLAGS.test
    by_split = {"train": read_train or read}
    return {name: by_split.get(name, read)(path) for name, path in paths.items() if path}


def further_dev():
    """Return {name: files} of --further_dev; raise an InputError without --dev."""
    refuse_without(["further_dev"], "dev")
    return named_files("further_dev")


def warn_of_shared_corpora(corpora):
    """Warn of files or folders of --corpus that a set to evaluate on has too.

    Args:
        corpora: {flag: paths}, with "corpus" among them.
    """
    learned = {os.path.realpath(path) for path in corpora["corpus"]}
    for flag, paths in corpora.items():
        if flag != "corpus" and (shared := {*map(os.path.realpath, paths)} & learned):
            logging.warning(
                "%s has %s, which is `corpus` too, so that its scores say little of new texts.",
                flag,
                min(shared),
            )


def read_documents(paths, most=None):
    """Read the documents of --corpus or --dev that hold text, all or the first `most`.

    Raises:
        InputError: if none do.
    """
    files, texts = corpora.find_files(paths), []
    if not all(map(holds_nothing, files)):
        documents = corpora.read_documents(files, FLAGS.documents, FLAGS.text_column)
        texts = [*itertools.islice(filter(str.strip, documents), most)]
    if not texts:
        raise InputError(f"{','.join(paths)} holds no text; give files with text.")
    return texts


def read_inputs(path, folder, text_column=None, pair_column=None):
    """Return the `Inputs` of a file, read as the task's recipe does but without labels.

    Args:
        path: of the file.
        folder: of a model, whose task decides the format; None for texts without a task.
        text_column, pair_column: names of columns; the task's defaults if None.
    """
    head = folder and checkpoints.read_head(folder)
    if head == EMBEDDER.head or head not in TASK_HEADS:
        examples = text.read_examples(path, text_column or "sentence", pair_column, None)
        return pipelines.Inputs(examples.texts, examples.pairs)
    # An empty label column means no labels.
    columns = pipelines.Columns(text_column, pair_column, "", prompt=text_column)
    labels, settings = checkpoints.read_labels(folder), checkpoints.read_task_settings(folder)
    task = pipelines.prediction_task(pipelines.read_kind(folder), labels, settings)
    return task.read(path, columns)
