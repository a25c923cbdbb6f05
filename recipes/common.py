"""Shared parts of the recipes: flag groups, the entry point and one-sentence errors."""

import glob
import os

import tfnlp
from distill import learning, reports
from tfnlp import checkpoints, pipelines, text, training
from tfnlp.utils.worker_cluster import read_cluster

# Set before TensorFlow is imported, to silence its start-up notices.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import dataclasses
import pathlib
import re
import shlex
import sys

from absl import app, flags, logging

from recipes import compression_flags, model_flags
from recipes.allocator import keep_freed_memory
from recipes.command_line import fail, flag_text, group, parse, recipe_flags, refuse_beside
from tfnlp.training.training_config import OPTIMIZERS, SCHEDULES, TrainingConfig
from tfnlp.utils.errors import ColumnError, InputError

FLAGS = flags.FLAGS


def run(main, tensorflow=True, check=None):
    """Run a recipe's `main()`; report bad input and Ctrl-C in one sentence, without a traceback.

    Args:
        main: a function without arguments.
        tensorflow: whether the recipe needs TensorFlow.
        check: a function without arguments that raises an InputError for conflicting flags. It
            runs before TensorFlow is imported, which takes seconds. None for no check.
    """

    def guarded(argv):
        logging.set_verbosity(logging.INFO)
        logging.get_absl_handler().setFormatter(_Plain())
        try:
            check_files()
            check_strategy()
            if check is not None:
                check()
            check_columns()
            check_labels()
            training_config()
            if tensorflow:
                keep_freed_memory()
                import_tensorflow_quietly()
            main()
        except InputError as e:
            fail(with_flags(with_column_flag(e), FLAGS))
        except KeyboardInterrupt:
            print(f"Stopped; to go on from what is saved: {resuming_command()}", file=sys.stderr)
            sys.exit(130)

    try:
        app.run(guarded, flags_parser=parse)
    except BrokenPipeError:
        # The reader of the pipe, such as `head`, has closed it; Python would flush once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def resuming_command():
    """Return this recipe's shell command without --overwrite, which would delete its run."""
    path = pathlib.Path(sys.argv[0])  # in recipes/ or benchmarks/
    given = [word for word in sys.argv[1:] if word.lstrip("-").partition("=")[0] != "overwrite"]
    return shlex.join(["python", "-m", f"{path.parent.name}.{path.stem}", *given])


def check_files():
    """Raise an InputError if a file named by a flag does not exist."""
    for name in sorted(_FILES & recipe_flags().keys()):
        given = FLAGS[name].value or []
        for path in [given] if isinstance(given, str) else given:
            if not os.path.exists(path) and not glob.has_magic(path):
                raise InputError(f"{path} does not exist; check the path.")


def check_columns():
    """Raise an InputError if a table lacks a column named by a flag.

    Tables are .tsv, .csv, .json and .jsonl files. Only the header or first object is read.
    """

    for path, columns in _columns_of_files().items():
        table = path.lower().removesuffix(".gz").endswith(text.TABLES)
        if table and os.path.isfile(path):
            next(text.read_columns(path, columns))


def check_labels():
    """Raise an InputError if label flags do not match the labels in --train.

    --train is read only if --labels or --positive_label is given. Recipes with --teacher_dir do
    not read it, since a teacher has its own labels.
    """

    if not {"monitor", "positive_label"} <= recipe_flags().keys():
        return
    if FLAGS.labels:
        try:
            text.check_label_names(FLAGS.labels, least=2)
        except InputError as e:
            raise InputError(f"labels={flag_text(FLAGS.labels)}: {e}") from e
    label_names = None
    if "teacher_dir" not in FLAGS and (FLAGS.labels or FLAGS.positive_label):
        columns = (FLAGS.text_column, FLAGS.pair_column, FLAGS.label_column)
        label_names = text.read_examples(FLAGS.train, *columns, FLAGS.labels).label_names
    text.check_positive_label(label_names, FLAGS.monitor, FLAGS.positive_label)


def _columns_of_files():
    """Return {path: columns} for the files and columns named by the recipe's flags."""
    columns = {}
    for flag, names in _named_columns().items():
        for file in _FILES_OF_COLUMN.get(flag, _EXAMPLES):
            paths = _listed(FLAGS[file].value) if file in FLAGS else []
            if len(paths) == 1 or flag not in _OF_ONE_TABLE:
                for path in paths:
                    columns.setdefault(path, []).extend(names)
    return columns


def _named_columns():
    """Return {flag: columns} for the recipe's flags that name columns."""
    names = [name for name in recipe_flags() if name.endswith(("_column", "_columns"))]
    return {name: _listed(FLAGS[name].value) for name in names if FLAGS[name].value}


def _listed(value):
    """Return a flag's value as a list, empty if the flag is not given."""
    return value if isinstance(value, list) else [value] if value else []


def with_column_flag(error):
    """Return an error's message; prefix a missing column with the flag that names it."""
    if isinstance(error, ColumnError):
        for flag, columns in _named_columns().items():
            if error.column in columns:
                return f"{flag}={error.column}: {error}"
    return str(error)


def check_strategy():
    """Raise an InputError for --strategy=multi_worker without a cluster in TF_CONFIG."""
    if "strategy" in FLAGS and FLAGS.strategy == "multi_worker":
        read_cluster()


def with_flags(message, names):
    """Return a library message with its arguments written as flags: `--max_length=5`.

    Args:
        message: text that names arguments before an equals sign or in backticks.
        names: flag names.
    """

    def flag(match):
        name = match[1] or match[2]
        return f"--{name}" if name in names else match[0]

    # Whole words only, not parts of a path.
    return re.sub(r"(?<![^\s(])(?:(\w+)(?==)|`(\w+)`)", flag, message)


def import_tensorflow_quietly():
    """Import TensorFlow with stderr redirected: no setting silences its first notices."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        import tensorflow  # noqa: F401
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


class _Plain(logging.PythonFormatter):
    """Log formatter without date and source location, which a shell user does not need."""

    def format(self, record):
        prefix = "" if record.levelno < logging.converter.STANDARD_WARNING else "Warning: "
        return prefix + with_flags(record.getMessage(), FLAGS)


@group("Data")
def define_data_flags():
    """Define the data flags of a recipe that trains on labelled files."""
    flags.DEFINE_string("train", None, "Training file: .tsv, .csv, .json or .jsonl, or with .gz.")
    flags.DEFINE_string("dev", None, "File that picks the best epoch and reports its score.")
    flags.DEFINE_string("test", None, "File scored once at the end, if given.")
    flags.DEFINE_string("text_column", "sentence", "Column of the text.")
    flags.DEFINE_string("pair_column", None, "Column of the second text, for pairs.")
    flags.DEFINE_string(
        "label_column", "label", "Column of the label; in JSON also a path, such as labels.label."
    )
    flags.DEFINE_list(
        "labels", None, "Labels in order of their ids; those in --train, sorted, if not given."
    )
    flags.mark_flags_as_required(["train", "dev"])


@group("Task")
def define_answerer_flags():
    """Define the question-answering flags of training and distillation."""
    flags.DEFINE_integer("stride", 64, "Tokens that a window shares with the one before.", 0)
    flags.DEFINE_integer(
        "max_question_length", 64, "Longest question in tokens; the rest is cut, as BERT does.", 1
    )
    flags.DEFINE_bool(
        "null_answers",
        False,
        "Whether a text may not answer a question (SQuAD 2.0); else refused.",
    )
    flags.DEFINE_integer("n_best", 5, "Answers to write for each question.", 1)


@group("Task")
def define_tagger_flags():
    """Define the tagging flags of training and distillation."""
    flags.DEFINE_string(
        "comment_prefix",
        None,
        "Lines that begin with it are left out; CoNLL's and KLUE's comments if not given.",
    )
    flags.DEFINE_integer("stride", 32, "Tokens that a window shares with the one before.", 0)


@group("Task")
def define_chooser_flags():
    """Define the multiple-choice flags of training and distillation."""
    flags.DEFINE_string("prompt_column", "prompt", "Column of the beginning.")
    flags.DEFINE_list("choice_columns", None, "Columns of the endings; choice0, ... if not given.")
    flags.DEFINE_string("label_column", "label", "Column of the right ending's number.")


@group("Score")
def define_classification_flags():
    """Define the flags of a classifier's score."""
    flags.DEFINE_enum(
        "monitor",
        "accuracy",
        ["accuracy", "matthews", "macro_f1", "f1"],
        "Score that picks the best epoch; f1 is that of --positive_label.",
    )
    flags.DEFINE_string(
        "positive_label", None, "Label whose F1 is a score too, as in MRPC and QQP (1 there)."
    )


@group("Data")
def define_split_flags():
    """Define the data flags of a recipe with task-specific file formats."""
    flags.DEFINE_string("train", None, "Training file.")
    flags.DEFINE_string("dev", None, "File that picks the best epoch and reports its score.")
    flags.DEFINE_string("test", None, "File scored once at the end, if given.")
    flags.mark_flags_as_required(["train", "dev"])


@group("Adversarial training")
def define_adversarial_flags():
    """Define the flags of virtual adversarial fine-tuning (SiFT)."""
    flags.DEFINE_float(
        "adversarial_weight",
        0.0,
        "Weight of the adversarial loss (SiFT: DeBERTa, section 4); 0: none. A step takes "
        "three times as long with it.",
        0,
    )
    flags.DEFINE_float(
        "adversarial_step", 1e-4, "Its gradient step, in deviations of an embedding.", 0
    )


@group("Model")
def define_model_flag():
    """Define --model_dir, the model to start from."""
    flags.DEFINE_string("model_dir", None, "Folder of a model, or its name on Hugging Face's Hub.")
    flags.mark_flag_as_required("model_dir")


@group("Training")
def define_training_flags(
    epochs, learning_rate, max_length="Longest input in tokens; the rest is cut."
):
    """Define the flags of a training; `max_length` is the help of --max_length."""
    define_run_flags(epochs)
    flags.DEFINE_integer("max_length", 128, max_length, 3)
    flags.DEFINE_integer("batch_size", 32, "Examples in a batch, over all devices.", 1)
    define_optimizer_flags(learning_rate)
    define_memory_flags()


@group("Training")
def define_run_flags(epochs):
    """Define the flags of any run: its folder, epochs, seed, strategy and precision."""
    flags.DEFINE_string("output_dir", None, "Folder of the run; a killed run resumes from it.")
    flags.DEFINE_bool("overwrite", False, "Delete the run that the folder holds, and start anew.")
    flags.DEFINE_integer(
        "epochs",
        epochs,
        "Passes over the training data; more for a finished run go on from its end.",
        1,
    )
    flags.DEFINE_integer("patience", 0, "Stop after so many epochs without gain; 0: never.", 0)
    flags.DEFINE_integer("seed", 0, "Seed of weights, dropout and data order.", 0)
    flags.DEFINE_integer("checkpoint_steps", 500, "Steps between states to resume from.", 1)
    flags.DEFINE_enum(
        "strategy",
        "auto",
        ["auto", "one_device", "mirrored", "multi_worker"],
        "tf.distribute strategy; multi_worker: a process for each worker that TF_CONFIG names.",
    )
    flags.DEFINE_enum(
        "precision",
        "float32",
        ["float32", "mixed_bfloat16", "mixed_float16"],
        "Keras dtype policy of the training.",
    )
    flags.mark_flag_as_required("output_dir")


def define_document_flags(documents, default=None):
    """Define the flags that split unlabelled files into documents.

    Args:
        documents: the default of --documents; None if `default` describes it.
        default: a description of the default.
    """
    else_is = f"; {default}" if default else ""
    flags.DEFINE_enum(
        "documents",
        documents,
        ["blank_lines", "lines", "files"],
        "What parts the documents of plain text: blank lines; or each line is one, as of reviews; "
        f"or each file is{else_is}.",
    )
    flags.DEFINE_string("text_column", "sentence", "Column of the text, where there are columns.")


def define_on_nan_flag():
    """Define --on_nan, the handling of a step whose loss is not finite."""
    flags.DEFINE_enum(
        "on_nan",
        "stop",
        ["stop", "skip"],
        "Whether a batch whose loss is not finite, or explodes, stops the training, or is left "
        "out. In either case it changes no weight.",
    )


@group("Optimizer")
def define_optimizer_flags(learning_rate):
    """Define the flags of the optimizer and its schedule."""
    flags.DEFINE_enum("optimizer", "adamw", OPTIMIZERS, "AdamW, or LAMB for batches of thousands.")
    flags.DEFINE_float("learning_rate", learning_rate, "Peak learning rate.", 0)
    flags.DEFINE_enum("schedule", "linear", SCHEDULES, "How the rate falls once it has its peak.")
    flags.DEFINE_float("warmup_share", 0.1, "Share of the steps in which the rate rises.", 0, 1)
    flags.DEFINE_float(
        "layer_decay",
        1.0,
        "The rate of each block, as a share of that of the block above; ELECTRA's is 0.8.",
        0,
        1,
    )
    flags.DEFINE_float("weight_decay", 0.01, "Decay of weights; none on biases and norms.", 0)
    flags.DEFINE_float("clip_norm", 1.0, "Largest norm of all gradients together; 0: any.", 0)
    flags.DEFINE_float(
        "ema_decay",
        0.0,
        "Evaluate and save the moving average of the weights, by this decay, such as 0.999; 0: "
        "the weights.",
        0,
        1,
    )


@group("Memory and speed")
def define_memory_flags():
    """Define the flags of a step's memory and speed."""
    flags.DEFINE_integer(
        "accumulation_steps",
        1,
        "Parts that each batch is read in, for less memory; the step is that of the batch.",
        1,
    )
    flags.DEFINE_bool(
        "gradient_checkpointing",
        False,
        "Compute each block once more for its gradients: less memory, a third more time.",
    )
    flags.DEFINE_bool(
        "fixed_length", False, "Pad all training texts to the longest; else to their batch's."
    )
    flags.DEFINE_bool("xla", False, "Compile the steps by XLA; needs --fixed_length.")


# Flags that do not affect the final weights, so that they may change when a run resumes.
_NOT_DECISIVE = {"output_dir", "overwrite", "checkpoint_steps", "test", "on_nan"}
# Flags of example files, and of all files; folder flags end in _dir.
_EXAMPLES = ("train", "dev", "test", "input", "texts", "corpus")
_FILES = {*_EXAMPLES, "vocabulary_text", "calibration_text", "check_text", "golden"}
# File flags of columns outside example files; --translation_column is of an output file.
_FILES_OF_COLUMN = {
    "calibration_column": ("calibration_text",),
    "calibration_pair_column": ("calibration_text",),
    "reference_column": ("references",),
    "hypothesis_column": ("hypotheses",),
    "translation_column": (),
}
# Columns that do not apply if two parallel text files are given.
_OF_ONE_TABLE = ("source_column", "target_column")


def decisive_flags():
    """Return {name: value} of the flags that affect the result, with absolute paths."""
    names = sorted(recipe_flags().keys() - _NOT_DECISIVE)
    return {name: _whole_path(name, FLAGS[name].value) for name in names}


def _whole_path(name, value):
    if name == "cache_dir":  # only its presence matters, since cached states are rounded
        return value and "given"
    if isinstance(value, list):
        return [_whole_path(name, one) for one in value]
    is_path = name in _FILES or name.endswith("_dir")
    return os.path.abspath(value) if is_path and value and os.path.exists(value) else value


def run_folder():
    """Return the `RunFolder` of --output_dir."""

    writes = training.is_chief(FLAGS.strategy)
    return training.RunFolder(FLAGS.output_dir, decisive_flags(), FLAGS.overwrite, writes)


def training_config(**given):
    """Return the `TrainingConfig` of the flags, with the fields in `given` replaced."""

    names = [field.name for field in dataclasses.fields(TrainingConfig) if field.name in FLAGS]
    return TrainingConfig(**{name: FLAGS[name].value for name in names} | given)


def read_splits(label_names=None):
    """Return the examples of --train, --dev and --test (None if not given), with shared labels.

    Args:
        label_names: the labels of an existing model; if None, --labels or those in --train.
    """

    if label_names == [f"LABEL_{i}" for i in range(len(label_names or []))]:
        label_names = _names_of_unnamed(label_names)
    if None not in (label_names, FLAGS.labels) and label_names != FLAGS.labels:
        raise InputError(
            f"--labels={flag_text(FLAGS.labels)} are not the model's ({','.join(label_names)}); "
            "leave them out."
        )
    columns = (FLAGS.text_column, FLAGS.pair_column, FLAGS.label_column)
    train = text.read_examples(FLAGS.train, *columns, label_names or FLAGS.labels)
    dev = text.read_examples(FLAGS.dev, *columns, train.label_names)
    test = text.read_examples(FLAGS.test, *columns, train.label_names) if FLAGS.test else None
    return train, dev, test


def _names_of_unnamed(unnamed):
    """Return names for a teacher's classes that its folder calls LABEL_0, LABEL_1, ..."""

    columns = (FLAGS.text_column, FLAGS.pair_column, FLAGS.label_column)
    found = set(text.read_examples(FLAGS.train, *columns, FLAGS.labels).label_names)
    if found <= set(unnamed):
        return unnamed
    names = FLAGS.labels or [str(i) for i in range(len(unnamed))]
    if len(names) != len(unnamed) or not found <= set(names):
        raise InputError(
            f"The {len(unnamed)} classes of teacher_dir={FLAGS.teacher_dir} have no names, and "
            f"those of train={FLAGS.train} are {', '.join(sorted(found))}; give --labels, the "
            "names in the order of the teacher's classes."
        )
    warn_of_unnamed(names)
    return names


def warn_of_unnamed(names):
    """Warn which names are assumed for the classes of a teacher without label names."""
    logging.warning(
        "The teacher's classes have no names: %s are taken for them, in this order.",
        ", ".join(names),
    )


def finetune(task, make_model, train, dev, test=None):
    """Fine-tune a model for a task with the settings of the flags.

    Args:
        task: see `tfnlp.tasks`.
        make_model: a function, called in the strategy's scope, that returns the model and its
            tokenizer.
        train, dev, test: examples; `test` may be None.
    """
    import keras

    compress = compression_flags.compressor()
    config = training_config()
    run = run_folder()
    keras.utils.set_random_seed(FLAGS.seed)
    training.set_precision(FLAGS.precision)
    with training.make_strategy(FLAGS.strategy).scope():
        model, tokenizer = make_model()
        model_flags.keep_tokenizer(run, tokenizer)
        check_fit(model, tokenizer)
        regularizer = make_regularizer(model, task)
        with compression_flags.rounding(model):
            return training.finetune(
                task,
                model,
                tokenizer,
                data=training.Splits(train, dev, FLAGS.max_length, test),
                config=config,
                run=run,
                regularizer=regularizer,
                compress=compress,
            )


def make_regularizer(model, task):
    """Return the `AdversarialRegularizer` of the flags, or None."""

    if not FLAGS.adversarial_weight:
        return None
    return training.AdversarialRegularizer(
        model, task.outputs, FLAGS.adversarial_weight, FLAGS.adversarial_step, seed=FLAGS.seed
    )


def check_fit(model, tokenizer):
    """Raise an InputError unless the vocabulary and --max_length fit the model."""

    tfnlp.models.check_vocabulary(tokenizer, model)
    positions = tfnlp.models.max_positions(model)
    if positions is not None and FLAGS.max_length > positions:
        raise InputError(
            f"--max_length={FLAGS.max_length} is above the model's {positions} positions."
        )


def layer_map_flag():
    """Return --layer_map as a name or a list of integers."""
    if not all(layer.strip().isdecimal() for layer in FLAGS.layer_map):
        return ",".join(FLAGS.layer_map)
    return [int(layer) for layer in FLAGS.layer_map]


# Copy of `distill.learning.METHODS`, so that --help does not import Keras.
METHOD_NAMES = ("logits", "distilbert", "tinybert", "minilm", "minilm_v2", "pkd")
# Flags that are arguments of one or more methods.
METHOD_ARGUMENTS = (
    *("temperature", "soft_label_weight", "embedding_weight", "hidden_state_weight"),
    *("attention_weight", "relation_weight", "cosine_weight", "relation_heads", "teacher_layer"),
)


def _weight_of(what):
    return f"Weight of the loss on {what}; the method's if not given."


@group("Distillation")
def define_student_flags(num_layers, method):
    """Define the flags of a distillation: the teacher, the student and the losses."""
    flags.DEFINE_string(
        "teacher_dir",
        None,
        "Folder of the teacher, or its name on Hugging Face's Hub; of a task's teachers several, "
        "of one tokenizer, with commas between.",
    )
    flags.DEFINE_string(
        "family", None, "The student's family, such as distilbert; the teacher's if not given."
    )
    flags.DEFINE_string(
        "size", None, "The student's size by name, such as tinybert_4l_312; the next replace it."
    )
    flags.DEFINE_integer("num_layers", num_layers, "The student's encoder blocks.", 1)
    flags.DEFINE_integer("hidden_dim", None, "The student's width; the teacher's if not given.", 1)
    flags.DEFINE_integer(
        "num_heads", None, "The student's heads; as its width asks if not given.", 1
    )
    flags.DEFINE_integer(
        "intermediate_dim",
        None,
        "The inner width of the student's feed-forward networks; as many times its width as the "
        "teacher's if not given.",
        1,
    )
    flags.DEFINE_enum(
        "method",
        method,
        list(METHOD_NAMES),
        "What the student learns from: soft labels alone (logits), or what the paper of that name "
        "adds to them.",
    )
    flags.DEFINE_list(
        "layer_map",
        "uniform",
        "The teacher's layers that the student's start and learn from: uniform, last, first, "
        "alternate (every second of the upper ones goes), or one for each, counted from 0.",
    )
    flags.DEFINE_bool("initialize", True, "Start from the teacher's weights where widths agree.")
    flags.DEFINE_float(
        "temperature",
        None,
        "Temperature of the soft labels, where they are learned and no numbers; the method's if "
        "not given.",
        1e-3,
    )
    flags.DEFINE_float("soft_label_weight", None, _weight_of("the soft labels"), 0)
    flags.DEFINE_float("embedding_weight", None, _weight_of("the embeddings"), 0)
    flags.DEFINE_float("hidden_state_weight", None, _weight_of("hidden states"), 0)
    flags.DEFINE_float("attention_weight", None, _weight_of("attention"), 0)
    flags.DEFINE_float("relation_weight", None, _weight_of("queries, keys and values"), 0)
    flags.DEFINE_float("cosine_weight", None, _weight_of("the cosines of the last states"), 0)
    flags.DEFINE_integer(
        "relation_heads", None, "Heads that minilm_v2 splits into; the teacher's if not given.", 1
    )
    flags.DEFINE_integer(
        "teacher_layer",
        None,
        "Teacher's layer for minilm and minilm_v2, counted from 0, or below 0 from the end; the "
        "last if not given.",
    )
    flags.mark_flag_as_required("teacher_dir")


@group("Distillation")
def define_cache_flag():
    """Define --cache_dir, the cache of the teacher's outputs."""
    flags.DEFINE_string(
        "cache_dir",
        None,
        "Folder that caches the teacher's outputs on disk, computed once; of texts in which no "
        "token is hidden.",
    )


@group("Distillation")
def define_distillation_flags():
    """Define the flags of a distillation for a task."""
    define_student_flags(num_layers=3, method="logits")
    flags.DEFINE_string(
        "student_dir",
        None,
        "Folder of the student to start from, such as the best of distill_general; one of the "
        "sizes above if not given. Of the flags above --layer_map then only says what it learns "
        "from.",
    )
    flags.DEFINE_string(
        "tokenizer_dir",
        None,
        "Folder of the student's tokenizer, such as of fewer tokens, from train_tokenizer; the "
        "teacher's if not given.",
    )
    flags.DEFINE_float("hard_label_weight", 0.5, "Weight of the loss on the labels.", 0)
    flags.DEFINE_integer(
        "intermediate_epochs",
        None,
        "Epochs on embeddings, states and attention alone before the --epochs without them; 10 "
        "with --method=tinybert and else 0 if not given.",
        0,
    )
    define_cache_flag()
    flags.DEFINE_list(
        "teacher_weights",
        None,
        "How much each of several teachers counts, such as 2,1; all alike if not given.",
    )
    flags.DEFINE_enum(
        "teacher_precision",
        None,
        ["float32", "bfloat16", "float16"],
        "Dtype policy of the teacher alone, from whose float32 weights students start all the "
        "same; --precision if not given.",
    )
    compression_flags.define_distillation_flags()
    compression_flags.define_training_flags()


def student_arguments():
    """Return the arguments of `make_student` from the flags."""
    # With --size, the number of layers is the size's unless --num_layers is given.
    own_layers = FLAGS.size and FLAGS["num_layers"].using_default_value
    return {
        "num_layers": None if own_layers else FLAGS.num_layers,
        "hidden_dim": FLAGS.hidden_dim,
        "num_heads": FLAGS.num_heads,
        "intermediate_dim": FLAGS.intermediate_dim,
        "layer_map": layer_map_flag(),
        "initialize": FLAGS.initialize,
        "family": FLAGS.family,
        "size": FLAGS.size,
    }


def check_distillation():
    """Raise an InputError for conflicting flags of a task's distillation."""
    compression_flags.check_training_flags()
    model_flags.check_family()
    if FLAGS.keep_tokens is not None and FLAGS.tokenizer_dir:
        raise InputError(
            f"keep_tokens={FLAGS.keep_tokens} is of the teacher's tokens, but the student has "
            f"those of tokenizer_dir={FLAGS.tokenizer_dir}; leave one out."
        )
    if not FLAGS.student_dir:
        return
    sizes = ("num_layers", "hidden_dim", "num_heads", "intermediate_dim")
    starts = ("family", "size", *sizes, "initialize", "tokenizer_dir")
    names = (*starts, "keep_tokens", "keep_heads", "keep_units")
    refuse_beside(names, f"student_dir={FLAGS.student_dir}, whose model has its own")


def start_student(teacher, task, tokenizer, outputs):
    """Load or build the student of the flags.

    Args:
        teacher: the model whose weights the student may start from.
        task: see `tfnlp.tasks`.
        tokenizer: the teacher's tokenizer.
        outputs: extra outputs of a student from --student_dir, as keyword arguments of
            `load_model`.

    Returns:
        The student, its tokenizer, and the teacher's tokenizer if it differs, else None.
    """

    if FLAGS.student_dir:
        student = checkpoints.load_model(FLAGS.student_dir, task.head, task.num_classes, **outputs)
        own = text.load_tokenizer(FLAGS.student_dir)
        return student, own, None if own.to_json() == tokenizer.to_json() else tokenizer
    if not FLAGS.tokenizer_dir:
        return learning.make_student(teacher, **student_arguments()), tokenizer, None
    own = text.load_tokenizer(FLAGS.tokenizer_dir)
    tokenizers = {"tokenizer": own, "teacher_tokenizer": tokenizer}
    return learning.make_student(teacher, **student_arguments(), **tokenizers), own, tokenizer


def method_arguments():
    """Return {name: value} of the flags that are arguments of a distillation method."""
    return {name: FLAGS[name].value for name in METHOD_ARGUMENTS}


def teacher_dirs():
    """Return the list of folders in --teacher_dir."""
    return FLAGS.teacher_dir.split(",")


def teacher_weights():
    """Return --teacher_weights as a tuple of floats, or None if not given.

    Raises:
        InputError: if the weights are not numbers, or do not fit the teachers.
    """

    if FLAGS.teacher_weights is None:
        return None
    try:
        weights = [float(weight) for weight in FLAGS.teacher_weights]
    except ValueError:
        shown = ",".join(FLAGS.teacher_weights)
        raise InputError(f"teacher_weights={shown} must be numbers, such as 2,1.") from None
    learning.teacher_shares(weights, len(teacher_dirs()))
    return tuple(weights)


def teacher_labels(head):
    """Return the labels of the first teacher, which must have this head; None if unnamed."""

    return learning.read_teacher_labels(teacher_dirs()[0], head)


def teachers_and_student(task, train, outputs):
    """Load the teachers and build the student of a distillation.

    Args:
        task: see `tfnlp.tasks`.
        train: the training examples.
        outputs: extra outputs of the models, as keyword arguments of `load_teacher`.

    Returns:
        The teachers; the unpruned teachers and their tokenizer, or None; the student; its
        tokenizer; and the teachers' tokenizer if it differs, else None.
    """

    folders, precision = teacher_dirs(), FLAGS.teacher_precision
    whole = learning.load_shared_tokenizer(folders)
    loaded = [
        learning.load_teacher(folder, task, **outputs, dtype=precision) for folder in folders
    ]
    for teacher in loaded:
        check_fit(teacher, whole)
    rounded = precision in ("bfloat16", "float16") and FLAGS.initialize and not FLAGS.student_dir
    # A student starts from float32 weights, so the first teacher is loaded again.
    exact = (
        [learning.load_teacher(folders[0], task, **outputs, dtype="float32")] if rounded else []
    )
    models, tokenizer = compression_flags.with_fewer_tokens([*loaded, *exact], whole, train)
    unpruned = None if models[0] is loaded[0] else (loaded, whole)
    source = models[-1] if rounded else models[0]
    source = compression_flags.with_fewer_parts(source, task, tokenizer, train)
    return models[: len(loaded)], unpruned, *start_student(source, task, tokenizer, outputs)


def run_distillation(task, train, dev, test=None):
    """Distil the teachers of --teacher_dir for a task with the settings of the flags.

    Args:
        task: see `tfnlp.tasks`.
        train, dev, test: examples; `test` may be None.
    """
    import keras

    weights = teacher_weights()
    compress = compression_flags.compressor()
    config = training_config()
    run = run_folder()
    keras.utils.set_random_seed(FLAGS.seed)
    training.set_precision(FLAGS.precision)
    if FLAGS.teacher_precision:
        training.check_precision(FLAGS.teacher_precision, "teacher_precision")
    with training.make_strategy(FLAGS.strategy).scope():
        # Outputs that no loss term reads cost nothing: the models compute them anyway.
        outputs = dict.fromkeys(
            ("hidden_states", "attention_scores", "attention_projections"), True
        )
        teachers, unpruned, student, tokenizer, other = teachers_and_student(task, train, outputs)
        check_fit(student, tokenizer)
        terms = learning.make_terms(
            FLAGS.method, teachers[0], student, task, layer_map_flag(), **method_arguments()
        )
        intermediate_epochs = FLAGS.intermediate_epochs
        if intermediate_epochs is None:
            intermediate_epochs = 10 if FLAGS.method == "tinybert" else 0
        phases = learning.split_phases(terms, task, intermediate_epochs, FLAGS.hard_label_weight)
        teacher = learning.Teacher(
            teachers,
            other or tokenizer,
            task,
            weights,
            FLAGS.cache_dir,
            unpruned=unpruned and learning.Teacher(*unpruned, task, weights),
        )
        data = learning.TaskData(tokenizer, train, dev, test, FLAGS.max_length)
        with compression_flags.rounding(student):
            return learning.distill(
                teacher, student, data, config, run, phases=phases, compress=compress
            )


def read_inputs(path, folder, text_column=None, pair_column=None):
    """Return the `Inputs` of a file, read as the task's recipe does but without labels.

    Args:
        path: of the file.
        folder: of a model, whose task decides the format; None for texts without a task.
        text_column, pair_column: names of columns; the task's defaults if None.
    """

    if folder is None or checkpoints.read_head(folder) not in pipelines.PIPELINES:
        found = text.read_examples(path, text_column or "sentence", pair_column, None)
        return reports.Inputs(found.texts, found.pairs)
    # An empty label column means no labels.
    columns = reports.Columns(text_column, pair_column, "", prompt=text_column)
    labels, settings = checkpoints.read_labels(folder), checkpoints.read_task_settings(folder)
    task = reports.prediction_task(pipelines.read_kind(folder), labels, settings)
    return task.read(path, columns)


def read_texts(paths):
    """Return all texts in --text_column and --pair_column of the files."""

    texts = []
    for path in paths:
        examples = text.read_examples(path, FLAGS.text_column, FLAGS.pair_column, None)
        texts += examples.texts + (examples.pairs or [])
    return texts
