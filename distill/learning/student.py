"""Building a student and starting it from its teacher's layers."""

import dataclasses

from distill.learning.layer_map import check_layer_map
from tfnlp.models import config_of


def student_config(teacher_config, num_layers, hidden_dim=None, num_heads=None):
    """The teacher's config with fewer layers, and narrower where asked.

    The feed-forward width keeps its ratio to the model width, and heads their size where
    the new width is a multiple of it.
    """
    hidden_dim = hidden_dim or teacher_config.hidden_dim
    if num_heads is None:
        head_dim = teacher_config.hidden_dim // teacher_config.num_heads
        same = hidden_dim % head_dim == 0
        num_heads = hidden_dim // head_dim if same else teacher_config.num_heads
    ratio = teacher_config.intermediate_dim / teacher_config.hidden_dim
    return dataclasses.replace(
        teacher_config,
        num_layers=num_layers,
        hidden_dim=hidden_dim,
        num_heads=num_heads,
        intermediate_dim=round(ratio * hidden_dim),
    )


def initialize_student(student, teacher, layer_map):
    """Copies the teacher's embeddings, chosen layers, pooler and classifier to the student.

    Sanh et al. 2019, 'DistilBERT', section 3. Weights of another shape are left as they are.

    Args:
        student: a `keras.Model` from `tfnlp.models`.
        teacher: likewise.
        layer_map: for each student layer the teacher's, both counted from 0.

    Returns:
        The number of weights copied, and the number left.
    """
    check_layer_map(layer_map, config_of(teacher).num_layers, config_of(student).num_layers)
    sources = {weight.path: weight for weight in teacher.weights}
    copied = 0
    for weight in student.weights:
        layer, _, rest = weight.path.partition("/")
        if layer.startswith("encoder_"):
            layer = f"encoder_{layer_map[int(layer.removeprefix('encoder_'))]}"
        source = sources.get(f"{layer}/{rest}")
        if source is not None and source.shape == weight.shape:
            weight.assign(source)
            copied += 1
    return copied, len(student.weights) - copied
