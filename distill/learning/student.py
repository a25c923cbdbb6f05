"""Building a student and starting it from its teacher's layers."""

import dataclasses

from distill.learning.layer_map import check_layer_map, even_layer_map
from tfnlp.models import build_model, config_of


def student_config(teacher_config, num_layers, hidden_dim=None, num_heads=None):
    """The teacher's config with fewer layers, and narrower where asked.

    The feed-forward width keeps its ratio to the model width, and heads their size where
    the new width is a multiple of it.
    """
    hidden_dim = hidden_dim or teacher_config.hidden_dim
    head_dim = None
    if num_heads is None and hidden_dim == teacher_config.hidden_dim:
        # Pruned heads are fewer than the width has room for.
        num_heads, head_dim = teacher_config.num_heads, teacher_config.head_dim
    elif num_heads is None:
        own = teacher_config.head_dim or teacher_config.hidden_dim // teacher_config.num_heads
        num_heads = teacher_config.num_heads if hidden_dim % own else hidden_dim // own
    ratio = teacher_config.intermediate_dim / teacher_config.hidden_dim
    return dataclasses.replace(
        teacher_config,
        num_layers=num_layers,
        hidden_dim=hidden_dim,
        num_heads=num_heads,
        head_dim=head_dim,
        intermediate_dim=round(ratio * hidden_dim),
    )


def make_student(
    teacher, num_layers, hidden_dim=None, num_heads=None, layer_map=None, initialize=True
):
    """A smaller model with the head and the outputs of its teacher, started from its weights.

    Args:
        teacher: from `tfnlp.models` or `load_teacher`.
        num_layers: the student's encoder blocks.
        hidden_dim: the student's width; the teacher's where None.
        num_heads: the student's heads; as its width asks where None, see `student_config`.
        layer_map: for each student layer the teacher's that it starts from, both counted from
            0; spread evenly where None.
        initialize: whether to start from the teacher's weights where the shapes agree.

    Returns:
        A `TextModel`.

    Raises:
        InputError: for sizes, or a layer map, that do not fit.
    """
    config = config_of(teacher)
    layer_map = layer_map or even_layer_map(config.num_layers, num_layers)
    check_layer_map(layer_map, config.num_layers, num_layers)
    counted = teacher.head in ("classifier", "tagger")
    student = build_model(
        student_config(config, num_layers, hidden_dim, num_heads),
        teacher.head,
        teacher.output["logits"].shape[-1] if counted else None,
        hidden_states="hidden_states" in teacher.output,
        attention_scores="attention_scores" in teacher.output,
    )
    if initialize:
        initialize_student(student, teacher, layer_map)
    return student


def initialize_student(student, teacher, layer_map):
    """Copies the teacher's embeddings, chosen layers and head to the student.

    Sanh et al. 2019, 'DistilBERT', section 3. Weights of another shape are left as they are.

    Args:
        student: a `keras.Model` from `tfnlp.models`.
        teacher: likewise.
        layer_map: for each student layer the teacher's, both counted from 0. Layers that share
            their weights (ALBERT) take those of the first of them.

    Returns:
        The number of weights copied, and the number left.
    """
    configs = config_of(teacher), config_of(student)
    check_layer_map(layer_map, *(config.num_layers for config in configs))
    sources = {weight.path: weight for weight in teacher.weights}
    copied = 0
    for weight in student.weights:
        source = sources.get(_teacher_path(weight.path, layer_map, *configs))
        if source is not None and source.shape == weight.shape:
            weight.assign(source)
            copied += 1
    return copied, len(student.weights) - copied


def _teacher_path(path, layer_map, teacher_config, config):
    """The path of the teacher's weight that a student's starts from."""
    layer, _, rest = path.partition("/")
    if layer.startswith("encoder_"):
        return f"encoder_{layer_map[int(layer.removeprefix('encoder_'))]}/{rest}"
    if layer == "encoder":
        block, _, rest = rest.partition("/")
        group = int(block.removeprefix("block_"))
        first = layer_map[group * config.num_layers // config.num_groups]
        group = first * teacher_config.num_groups // teacher_config.num_layers
        return f"encoder/block_{group}/{rest}"
    return path
