"""Flags of a distillation: the teachers, the student and the losses."""

import dataclasses

from absl import flags

from distill.learning.layer_map import resolve_layer_map
from recipes.flags import (
    compression_flags,
    dataclass_flags,
    model_flags,
    runner_flags,
    training_flags,
)
from recipes.shell.command_line import group, read_numbers, refuse_beside
from tfnlp.utils.settings import setting

FLAGS = flags.FLAGS
# Copy of `distill.learning.METHODS`, so that --help does not import Keras.
METHOD_NAMES = ("logits", "distilbert", "tinybert", "minilm", "minilm_v2", "pkd")
SIZES = ("num_layers", "hidden_dim", "num_heads", "intermediate_dim", *model_flags.FAMILY_FIELDS)


def _weight_of(tensors):
    return setting(None, f"Weight of the loss on {tensors}; the method's if not given.", low=0)


@dataclasses.dataclass(frozen=True)
class MethodArguments:
    """Arguments of one or more methods; None for the method's default."""

    temperature: float | None = setting(
        None,
        "Temperature of the soft labels (not of numbers and vectors); the method's if not given.",
        low=1e-3,
    )
    soft_label_weight: float | None = _weight_of("the soft labels")
    embedding_weight: float | None = _weight_of("the embeddings")
    hidden_state_weight: float | None = _weight_of("hidden states")
    attention_weight: float | None = _weight_of("attention")
    relation_weight: float | None = _weight_of("queries, keys and values")
    cosine_weight: float | None = _weight_of("the cosines of the last states")
    relation_heads: int | None = setting(
        None,
        "Heads that minilm_v2 splits queries, keys and values into; the teacher's if not given.",
        low=1,
    )
    teacher_layer: int | None = setting(
        None,
        "Layer of the teacher for minilm and minilm_v2, from 0, or below 0 from the end; the last "
        "if not given.",
    )


@group("Distillation")
def define_student_flags(num_layers, method):
    """Define the flags of a distillation: the teacher, the student and the losses."""
    flags.DEFINE_string(
        "teacher_dir",
        None,
        "Folder of the teacher, or its name on Hugging Face's Hub; for a task also several "
        "teachers with the same tokenizer, separated by commas.",
    )
    flags.DEFINE_string(
        "family",
        None,
        "Family of the student, such as distilbert, lstm, textcnn or bag; the teacher's if not "
        "given.",
    )
    flags.DEFINE_string(
        "size",
        None,
        "Size by name, such as tinybert_4l_312, of which --num_layers, --hidden_dim, --num_heads "
        "and --intermediate_dim change a part; if not given the teacher's width and proportions "
        "(inner width, size of a head), 2 recurrent layers.",
    )
    model_flags.define_size_flags(num_layers)
    model_flags.define_pooling_flags()
    flags.DEFINE_enum(
        "method",
        method,
        list(METHOD_NAMES),
        "Outputs of the teacher to learn from: soft labels alone (logits), or also those of the "
        "paper of that name.",
    )
    flags.DEFINE_list(
        "layer_map",
        "uniform",
        "Teacher layers that the student's layers start and learn from: uniform, last, first, "
        "alternate (every second upper layer is left out), or one number for each, from 0.",
    )
    flags.DEFINE_bool("initialize", True, "Start from the teacher's weights where widths agree.")
    dataclass_flags.define(MethodArguments)
    flags.mark_flag_as_required("teacher_dir")


@group("Distillation")
def define_cache_flag():
    """Define the flags of the cache of the teacher's outputs."""
    flags.DEFINE_string(
        "cache_dir",
        None,
        "Folder of the teacher's outputs, computed once; not with masked tokens.",
    )
    runner_flags.define()


@group("Distillation")
def define_distillation_flags(labelled=True):
    """Define the flags of a distillation for a task, whose examples may have labels."""
    define_student_flags(num_layers=3, method="logits")
    flags.DEFINE_string(
        "student_dir",
        None,
        "Folder of the student to start from, such as the best/ of distill_general, in place of "
        "the flags of its size; --layer_map then only selects the layers to learn from.",
    )
    flags.DEFINE_string(
        "tokenizer_dir",
        None,
        "Folder of a tokenizer for the student from train_tokenizer, such as a smaller one; the "
        "teacher's if not given.",
    )
    model_flags.define_embeddings_flag()
    if labelled:
        flags.DEFINE_float("hard_label_weight", 0.5, "Weight of the loss on the labels.", 0)
    flags.DEFINE_integer(
        "intermediate_epochs",
        None,
        "Epochs of a first phase on embeddings, hidden states and attention alone, which --epochs "
        "then leaves out; if not given 10 with --method=tinybert, else 0.",
        0,
    )
    define_cache_flag()
    flags.DEFINE_list(
        "teacher_weights", None, "Weights of several teachers, such as 2,1; equal if not given."
    )
    flags.DEFINE_enum(
        "teacher_precision",
        None,
        ["float32", "bfloat16", "float16"],
        "Dtype policy of the teacher; --precision if not given. Students start from its float32 "
        "weights in any case.",
    )
    compression_flags.define_distillation_flags()
    compression_flags.define_training_flags()


def define_flags(labelled=True):
    """Define the flags of a task's distillation, as `define_distillation_flags`, and training."""
    define_distillation_flags(labelled)
    training_flags.define_training_flags(epochs=6, learning_rate=1e-4)
    if labelled:
        training_flags.define_lora_flags()


def check_flags():
    """Raise an InputError for conflicting flags of a task's distillation."""
    compression_flags.check_training_flags()
    training_flags.training_config()
    teacher_weights()
    if FLAGS.tokenizer_dir:
        place = f"tokenizer_dir={FLAGS.tokenizer_dir}, whose tokenizer has its own"
        refuse_beside(["keep_tokens"], place)
    if FLAGS.embeddings:
        place = f"embeddings={FLAGS.embeddings}, whose words are the vocabulary"
        refuse_beside(["keep_tokens"], place)
    for keep in ("keep_heads", "keep_units"):
        if FLAGS[keep].value:
            place = f"{keep}={FLAGS[keep].value}, which starts from the teacher's heads and units"
            refuse_beside(("family", "size", *SIZES[1:]), place)
    if FLAGS.student_dir:
        names = ("family", "size", *SIZES, "initialize", "tokenizer_dir", "embeddings")
        names += ("keep_tokens", "keep_heads", "keep_units")
        refuse_beside(names, f"student_dir={FLAGS.student_dir}, whose model has its own")
    check_student(with_layers=not FLAGS.student_dir)


def check_student(with_layers=True):
    """Raise an InputError for a size or a layer map that no student can have.

    Args:
        with_layers: whether --num_layers or --size has the number of the student's layers.
    """
    whole = FLAGS.size or (FLAGS.hidden_dim and FLAGS.num_heads)
    names = SIZES[1:] if whole else model_flags.FAMILY_FIELDS
    config, layers, arguments = model_flags.scratch_config(names), layer_map(), student_arguments()
    if not config.attends:
        model_flags.scratch_config((), **{name: arguments[name] for name in SIZES})
        return
    count = arguments["num_layers"] or config.num_layers
    if isinstance(layers, str):
        resolve_layer_map(layers, count, count)
    elif with_layers:
        resolve_layer_map(layers, max(layers, default=0) + 1, count)


def student_arguments():
    """Return the arguments of `make_student` from the flags."""
    names = (*SIZES, "initialize", "family", "size")
    arguments = {name: FLAGS[name].value for name in names} | {"layer_map": layer_map()}
    config = model_flags.scratch_config(())
    # The number of layers is the size's or the family's unless --num_layers is given.
    if (FLAGS.size or not config.attends) and FLAGS["num_layers"].using_default_value:
        arguments["num_layers"] = None
    if "embeddings" in FLAGS and FLAGS.embeddings:
        arguments["hidden_dim"] = config.hidden_dim
    return arguments


def layer_map():
    """Return --layer_map as a name or a list of integers."""
    if not all(layer.strip().isdecimal() for layer in FLAGS.layer_map):
        return ",".join(FLAGS.layer_map)
    return [int(layer) for layer in FLAGS.layer_map]


def method_arguments():
    """Return {name: value} of the flags that are arguments of a distillation method."""
    return vars(dataclass_flags.read(MethodArguments))


def compares_tokens():
    """Return whether the method compares outputs of tokens, not of whole texts alone."""
    return bool(FLAGS.method != "logits" or FLAGS.hidden_state_weight or FLAGS.attention_weight)


def teacher_dirs():
    """Return the list of folders in --teacher_dir."""
    return FLAGS.teacher_dir.split(",")


def teacher_weights():
    """Return --teacher_weights as a tuple of floats, or None if not given."""
    weights = read_numbers("teacher_weights", float)
    return weights and tuple(weights)
