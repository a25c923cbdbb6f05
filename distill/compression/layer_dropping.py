"""Layer dropping: a model with some of another's blocks, unchanged."""

from distill.learning.layer_map import resolve_layer_map
from distill.learning.student import initialize_student, make_student
from tfnlp.layers import fake_quantize, get_ranges
from tfnlp.models import config_of
from tfnlp.utils.errors import InputError


def drop_layers(model, num_layers, layer_map="first"):
    """Build a model of some of another's layers, with everything else unchanged.

    Args:
        model: from `tfnlp.models.build_model`.
        num_layers: the number of layers to keep.
        layer_map: the layers to keep: the name of a layer map, such as "first" or "alternate", or
            a list of layers, counted from 0.

    Returns:
        A `TextModel`.

    Raises:
        InputError: as `resolve_layer_map`, and if a layer is named twice.
    """
    layers = resolve_layer_map(layer_map, config_of(model).num_layers, num_layers)
    if len(set(layers)) < len(layers):
        raise InputError(f"layer_map={layers} names a layer twice; each can stay once.")
    smaller = make_student(model, num_layers, layer_map=layers)
    if get_ranges(model):
        fake_quantize(smaller)
        initialize_student(smaller, model, layers)  # again, with the ranges
    return smaller
