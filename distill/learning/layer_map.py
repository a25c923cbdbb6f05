"""Layer maps: the teacher layer that each student layer starts and learns from."""

from tfnlp.utils.errors import InputError, unknown_name


def even_layer_map(teacher_layers, num_layers):
    """Spread the student's layers evenly over the teacher's, its last on the teacher's last.

    Jiao et al. 2020, 'TinyBERT', section 4.2: g(m) = m * teacher / student.

    Args:
        teacher_layers: the number of the teacher's layers.
        num_layers: the number of the student's.

    Returns:
        For each student layer, counted from 0, the teacher's layer, counted from 0.
    """
    return [(i + 1) * teacher_layers // num_layers - 1 for i in range(num_layers)]


def last_layer_map(teacher_layers, num_layers):
    """Return the teacher's last layers; arguments as in `even_layer_map`."""
    return list(range(teacher_layers - num_layers, teacher_layers))


def first_layer_map(teacher_layers, num_layers):
    """Return the teacher's first layers, without those at the top; else as `even_layer_map`.

    Sajjad et al. 2023, 'On the Effect of Dropping Layers of Pre-trained Transformer Models',
    section 3.1.
    """
    return list(range(num_layers))


def alternate_layer_map(teacher_layers, num_layers):
    """Drop every second of the teacher's layers, from the last but one downwards.

    Sajjad et al. 2023, section 3.1. Arguments as in `even_layer_map`; at least half of the layers
    stay.
    """
    dropped = {teacher_layers - 2 - 2 * i for i in range(teacher_layers - num_layers)}
    return [layer for layer in range(teacher_layers) if layer not in dropped]


# Layer maps by name.
LAYER_MAPS = {
    "uniform": even_layer_map,
    "last": last_layer_map,
    "first": first_layer_map,
    "alternate": alternate_layer_map,
}


def resolve_layer_map(layer_map, teacher_layers, student_layers):
    """Return a layer map as a list, from its name or the list itself.

    Args:
        layer_map: one of `LAYER_MAPS`, or for each student layer the teacher's, counted from 0.
        teacher_layers, student_layers: the number of layers of each.

    Raises:
        InputError: if the name is unknown, or the map does not fit the layers.
    """
    layers = layer_map
    if isinstance(layer_map, str):
        if layer_map not in LAYER_MAPS:
            raise unknown_name("layer_map", layer_map, LAYER_MAPS)
        layers = LAYER_MAPS[layer_map](teacher_layers, student_layers)
    if len(layers) != student_layers or not all(0 <= x < teacher_layers for x in layers):
        shown = layer_map if isinstance(layer_map, str) else ",".join(map(str, layers))
        raise InputError(
            f"layer_map={shown} must name one of the teacher's {teacher_layers} layers, "
            f"counted from 0, for each of the student's {student_layers}; give the student fewer "
            "layers, or another map."
        )
    return list(layers)
