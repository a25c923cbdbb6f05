"""Layer maps: the teacher layer that each student layer learns from."""

from tfnlp.utils.errors import InputError


def even_layer_map(teacher_layers, num_layers):
    """Spread the student's layers evenly over the teacher's, its last on the teacher's last.

    Jiao et al. 2020, 'TinyBERT', section 4.2: g(m) = m * teacher / student.

    Args:
        teacher_layers: the number of the teacher's layers.
        num_layers: the number of the student's.

    Returns:
        For each student layer, counted from 0, the teacher's layer, counted from 0.

    Raises:
        InputError: if the student has more layers than the teacher, or none.
    """
    if not 1 <= num_layers <= teacher_layers:
        raise InputError(
            f"num_layers={num_layers} must lie between 1 and the teacher's {teacher_layers} "
            "layers; give the student fewer."
        )
    return [(i + 1) * teacher_layers // num_layers - 1 for i in range(num_layers)]


def last_layer_map(teacher_layers, num_layers):
    """Return the teacher's last layers; arguments and errors as in `even_layer_map`."""
    even_layer_map(teacher_layers, num_layers)
    return list(range(teacher_layers - num_layers, teacher_layers))


def first_layer_map(teacher_layers, num_layers):
    """Return the teacher's first layers, without those at the top; else as `even_layer_map`.

    Sajjad et al. 2023, 'On the Effect of Dropping Layers of Pre-trained Transformer Models',
    section 3.1.
    """
    even_layer_map(teacher_layers, num_layers)
    return list(range(num_layers))


def alternate_layer_map(teacher_layers, num_layers):
    """Drop every second of the teacher's layers, from the last but one downwards.

    Sajjad et al. 2023, section 3.1. Arguments as in `even_layer_map`.

    Raises:
        InputError: as in `even_layer_map`, and if fewer than half would stay.
    """
    even_layer_map(teacher_layers, num_layers)
    dropped = {teacher_layers - 2 - 2 * i for i in range(teacher_layers - num_layers)}
    if min(dropped, default=0) < 0:
        raise InputError(
            f"num_layers={num_layers} of {teacher_layers} are fewer than half, which "
            "layer_map=alternate leaves; keep more, or use another map."
        )
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
    if not isinstance(layer_map, str):
        check_layer_map(layer_map, teacher_layers, student_layers)
        return list(layer_map)
    if layer_map not in LAYER_MAPS:
        raise InputError(
            f"layer_map={layer_map} is unknown; use {', '.join(LAYER_MAPS)}, or number a "
            "layer of the teacher for each of the student's, such as 1,3,5."
        )
    return LAYER_MAPS[layer_map](teacher_layers, student_layers)


def check_layer_map(layer_map, teacher_layers, student_layers):
    """Raise an InputError unless the map names one teacher layer for each student layer."""
    if len(layer_map) != student_layers:
        raise InputError(
            f"layer_map={layer_map} has {len(layer_map)} entries, but the student has "
            f"{student_layers} layers."
        )
    for layer in layer_map:
        if not 0 <= layer < teacher_layers:
            raise InputError(
                f"layer_map={layer_map} names layer {layer}, but the teacher has layers 0 to "
                f"{teacher_layers - 1}."
            )
