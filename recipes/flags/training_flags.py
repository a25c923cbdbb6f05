"""Flags of a training: its run, optimizer, memory and speed; and the start of its run."""

import os

from absl import flags, logging

from recipes.flags import dataclass_flags
from recipes.shell import entry_point
from recipes.shell.command_line import group, no_effect, recipe_flags, refuse_beside
from recipes.shell.input_checks import FILES
from tfnlp import training
from tfnlp.training.run.training_config import TrainingConfig
from tfnlp.training.step.worker_cluster import read_cluster
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
# Flags that do not affect the final weights, so that they may change when a run resumes.
_NOT_DECISIVE = {"output_dir", "overwrite", "checkpoint_steps", "test", "on_nan", "baseline"}
_NOT_DECISIVE |= {"further_dev", "keep_every", "keep_best", "log_steps", "log_to", "runner"}
_NOT_DECISIVE |= {"pipeline_options", "loader_processes"}
# Flags of one schedule alone.
_OF_SCHEDULES = {"decay_share": "wsd", "decay_power": "polynomial"}
_published = {}  # by the names of --recipe


@group("Training")
def define_training_flags(
    epochs, learning_rate, max_length="Longest input in tokens; the rest is cut."
):
    """Define the flags of a training; `max_length` is the help of --max_length."""
    define_run_flags(epochs)
    flags.DEFINE_integer("max_length", 128, max_length, 3)
    dataclass_flags.define(TrainingConfig, "batch_size")
    define_optimizer_flags(learning_rate)
    define_memory_flags()


def define_folder_flags():
    """Define the flags of a run's folder."""
    flags.DEFINE_string(
        "output_dir", None, "Folder of the run; the same command resumes a killed run."
    )
    flags.DEFINE_bool("overwrite", False, "Delete the run in the folder and start anew.")
    flags.mark_flag_as_required("output_dir")


@group("Training")
def define_run_flags(epochs):
    """Define the flags of any run: its folder, epochs, seed, strategy and precision."""
    define_folder_flags()
    names = "epochs", "max_steps", "patience", "seed", "checkpoint_steps", "keep_every"
    names += "keep_best", "log_steps", "log_to"
    dataclass_flags.define(TrainingConfig, *names, epochs=epochs)
    flags.DEFINE_enum(
        "strategy",
        "auto",
        ["auto", "one_device", "mirrored", "multi_worker"],
        "tf.distribute strategy; multi_worker: one process for each worker in TF_CONFIG.",
    )
    flags.DEFINE_enum(
        "precision",
        "float32",
        ["float32", "mixed_bfloat16", "mixed_float16"],
        "Keras dtype policy of the training.",
    )


@group("Optimizer")
def define_optimizer_flags(learning_rate):
    """Define the flags of the optimizer and its schedule."""
    names = "optimizer", "learning_rate", "schedule", "warmup_share", "warmup_steps"
    names += "layer_decay", "weight_decay", "clip_norm", "ema_decay"
    names += "freeze_layers", "freeze_embeddings"
    dataclass_flags.define(TrainingConfig, *names, learning_rate=learning_rate)
    define_number_flags()


@group("Optimizer")
def define_lora_flags():
    """Define the flags of LoRA, for trainings of a task."""
    dataclass_flags.define(TrainingConfig, "lora_rank", "lora_layers")


@group("Optimizer")
def define_number_flags(**defaults):
    """Define the flags of the schedule's end and of the optimizer's means, with other defaults."""
    names = "end_rate_share", "decay_share", "decay_power", "beta_1", "beta_2", "epsilon"
    dataclass_flags.define(TrainingConfig, *names, **defaults)


@group("Optimizer")
def define_recipe_flag(published):
    """Define --recipe, a name of `tfnlp.training.step.published_settings`, one of `published`."""
    _published.update(published)
    flags.DEFINE_enum(
        "recipe",
        None,
        list(published),
        "Settings of the optimizer that a paper trained this model with; flags that are given "
        "beside it win.",
    )


@group("Memory and speed")
def define_memory_flags():
    """Define the flags of a step's memory and speed."""
    names = "accumulation_steps", "gradient_checkpointing", "fixed_length", "xla"
    dataclass_flags.define(TrainingConfig, *names)


def training_config(kind=TrainingConfig):
    """Return the `TrainingConfig` of the flags, among them those that --recipe sets.

    Args:
        kind: its class.

    Raises:
        InputError: if flags contradict each other, or have no effect.
    """
    if "recipe" in FLAGS and FLAGS.recipe:
        _set_published(_published[FLAGS.recipe])
    if FLAGS.max_steps is not None:
        refuse_beside(("epochs",), f"max_steps={FLAGS.max_steps}, the length of the training")
    if "warmup_share" in FLAGS and FLAGS.warmup_steps is not None:
        refuse_beside(("warmup_share",), "`warmup_steps`")
    for name, schedule in _OF_SCHEDULES.items():
        if FLAGS[name].present and FLAGS.schedule != schedule:
            raise no_effect(name, f"on schedule={FLAGS.schedule}", f"give schedule={schedule}")
    if "lora_rank" in FLAGS and FLAGS["lora_layers"].present and not FLAGS.lora_rank:
        raise no_effect("lora_layers", "without LoRA", "give `lora_rank` too")
    for name in filter(FLAGS.__contains__, ("lora_rank", "freeze_layers")):
        if FLAGS[name].value and "model_dir" in FLAGS and not FLAGS.model_dir:
            raise InputError(
                f"{name}={FLAGS[name].value} keeps weights as they start, which are random "
                "without `model_dir`; give one."
            )
    return dataclass_flags.read(kind)


def _set_published(published):
    """Set the flags of the published settings that are not given."""
    for name, value in published.settings.items():
        if not FLAGS[name].present:
            FLAGS[name].value = value


def start_run(kind=TrainingConfig):
    """Load TensorFlow, and set the seed and the precision of the flags.

    Args:
        kind: class of the config.

    Returns:
        The config and the `RunFolder` of the flags.

    Raises:
        InputError: for --strategy=multi_worker without a cluster in TF_CONFIG, or if the folder
            cannot be written or does not belong to this run.
    """
    config = start_training(kind)
    return config, run_folder(decisive_flags(), training.is_chief(FLAGS.strategy))


def start_training(kind=TrainingConfig):
    """Start as `start_run` does, and return the config alone; `run_folder` makes the folders."""
    config = training_config(kind)
    if "recipe" in FLAGS and FLAGS.recipe:
        published = _published[FLAGS.recipe]
        changed = [name for name in published.settings if FLAGS[name].present]
        rest = f"; {', '.join(changed)} as given" if changed else ""
        logging.info("recipe=%s is that of %s%s.", FLAGS.recipe, published.source, rest)
    if FLAGS.strategy == "multi_worker":
        read_cluster()
    entry_point.load_tensorflow()
    import keras

    keras.utils.set_random_seed(FLAGS.seed)
    training.set_precision(FLAGS.precision)
    return config


def run_folder(decisive, writes=True, files=(), folder=""):
    """Return the `RunFolder` of --output_dir.

    Args:
        decisive: {name: value} of the flags that affect the result.
        writes, files: as `RunFolder` takes them.
        folder: a folder within --output_dir; itself if "".
    """
    defaults = {name: FLAGS[name].default for name in decisive if name in FLAGS}
    options = {"writes": writes, "defaults": defaults, "files": files}
    path = os.path.join(FLAGS.output_dir, folder)
    return training.RunFolder(path, decisive, FLAGS.overwrite, **options)


def decisive_flags():
    """Return {name: value} of the flags that affect the result, with absolute paths."""
    names = sorted(recipe_flags().keys() - _NOT_DECISIVE)
    return {name: _with_absolute_paths(name, FLAGS[name].value) for name in names}


def _with_absolute_paths(name, value):
    if name == "cache_dir":  # only its presence matters, since cached states are rounded
        return value and "given"
    if isinstance(value, list):
        return [_with_absolute_paths(name, path) for path in value]
    is_path = name in FILES or name.endswith("_dir")
    return os.path.abspath(value) if is_path and value and os.path.exists(value) else value
