"""Which teacher layer each student layer learns from."""

from tfnlp.errors import InputError


def even_layer_map(teacher_layers, num_layers):
    """Spreads the student's layers evenly, the last on the teacher's last.

    Jiao et al. 2020, 'TinyBERT', section 4.2: g(m) = m * teacher / student.

    Args:
        teacher_layers: the teacher's layers.
        num_layers: the student's.

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


def check_layer_map(layer_map, teacher_layers, student_layers):
    """Raises an InputError unless the map names one teacher layer for each student layer."""
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
