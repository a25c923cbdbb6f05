"""Flags of a distillation: the teachers, the student and the losses."""

from absl import flags

from recipes import compression_flags, model_flags, training_flags
from recipes.command_line import group, refuse_beside
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS
# Copy of `distill.learning.METHODS`, so that --help does not import Keras.
METHOD_NAMES = ("logits", "distilbert", "tinybert", "minilm", "minilm_v2", "pkd")
# Flags that are arguments of one or more methods.
METHOD_ARGUMENTS = (
    *("temperature", "soft_label_weight", "embedding_weight", "hidden_state_weight"),
    *("attention_weight", "relation_weight", "cosine_weight", "relation_heads", "teacher_layer"),
)


def _weight_of(tensors):
    return f"Weight of the loss on {tensors}; the method's if not given."


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
        "family", None, "Family of the student, such as distilbert; the teacher's if not given."
    )
    flags.DEFINE_string(
        "size",
        None,
        "Size of the student by name, such as tinybert_4l_312, which the next four flags change.",
    )
    flags.DEFINE_integer("num_layers", num_layers, "Encoder blocks of the student.", 1)
    flags.DEFINE_integer(
        "hidden_dim", None, "Width of the student; the teacher's if not given.", 1
    )
    flags.DEFINE_integer(
        "num_heads",
        None,
        "Attention heads of the student; a number that suits its width if not given.",
        1,
    )
    flags.DEFINE_integer(
        "intermediate_dim",
        None,
        "Inner width of the student's feed-forward networks; in the teacher's proportion to its "
        "width if not given.",
        1,
    )
    define_method_flags(method)
    flags.mark_flag_as_required("teacher_dir")


def define_method_flags(method):
    """Define the flags of the method and its losses."""
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
    flags.DEFINE_float(
        "temperature",
        None,
        "Temperature of the soft labels (not in regression); the method's if not given.",
        1e-3,
    )
    flags.DEFINE_float("soft_label_weight", None, _weight_of("the soft labels"), 0)
    flags.DEFINE_float("embedding_weight", None, _weight_of("the embeddings"), 0)
    flags.DEFINE_float("hidden_state_weight", None, _weight_of("hidden states"), 0)
    flags.DEFINE_float("attention_weight", None, _weight_of("attention"), 0)
    flags.DEFINE_float("relation_weight", None, _weight_of("queries, keys and values"), 0)
    flags.DEFINE_float("cosine_weight", None, _weight_of("the cosines of the last states"), 0)
    flags.DEFINE_integer(
        "relation_heads",
        None,
        "Heads that minilm_v2 splits queries, keys and values into; the teacher's if not given.",
        1,
    )
    flags.DEFINE_integer(
        "teacher_layer",
        None,
        "Layer of the teacher for minilm and minilm_v2, from 0, or below 0 from the end; the last "
        "if not given.",
    )


@group("Distillation")
def define_cache_flag():
    """Define --cache_dir, the cache of the teacher's outputs."""
    flags.DEFINE_string(
        "cache_dir",
        None,
        "Folder to cache the teacher's outputs in, computed once; only without masked tokens.",
    )


@group("Distillation")
def define_distillation_flags():
    """Define the flags of a distillation for a task."""
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
        "teacher_weights",
        None,
        "Weights of several teachers, such as 2,1; equal if not given.",
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


def define_flags():
    """Define the flags of a task's distillation and its training."""
    define_distillation_flags()
    training_flags.define_training_flags(epochs=6, learning_rate=1e-4)


def check_flags():
    """Raise an InputError for conflicting flags of a task's distillation."""
    compression_flags.check_training_flags()
    model_flags.check_family()
    training_flags.training_config()
    teacher_weights()
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


def student_arguments():
    """Return the arguments of `make_student` from the flags."""
    # With --size, the number of layers is the size's unless --num_layers is given.
    own_layers = FLAGS.size and FLAGS["num_layers"].using_default_value
    return {
        "num_layers": None if own_layers else FLAGS.num_layers,
        "hidden_dim": FLAGS.hidden_dim,
        "num_heads": FLAGS.num_heads,
        "intermediate_dim": FLAGS.intermediate_dim,
        "layer_map": layer_map(),
        "initialize": FLAGS.initialize,
        "family": FLAGS.family,
        "size": FLAGS.size,
    }


def layer_map():
    """Return --layer_map as a name or a list of integers."""
    if not all(layer.strip().isdecimal() for layer in FLAGS.layer_map):
        return ",".join(FLAGS.layer_map)
    return [int(layer) for layer in FLAGS.layer_map]


def method_arguments():
    """Return {name: value} of the flags that are arguments of a distillation method."""
    return {name: FLAGS[name].value for name in METHOD_ARGUMENTS}


def teacher_dirs():
    """Return the list of folders in --teacher_dir."""
    return FLAGS.teacher_dir.split(",")


def teacher_weights():
    """Return --teacher_weights as a tuple of floats, or None if not given.

    Raises:
        InputError: if the weights are not numbers.
    """
    if FLAGS.teacher_weights is None:
        return None
    try:
        weights = [float(weight) for weight in FLAGS.teacher_weights]
    except ValueError:
        shown = ",".join(FLAGS.teacher_weights)
        raise InputError(f"teacher_weights={shown} must be numbers, such as 2,1.") from None
    return tuple(weights)
