"""Translation students with fewer layers, initialised from their teacher's.

A student trains on the teacher's translations of the training texts (Kim & Rush 2016, section
3.2), like any translator: `recipes/translate.py` writes them, `recipes/train_translator.py` trains
on them.
"""

import dataclasses

from distill.learning.layer_map import resolve_layer_map
from tfnlp.models import TransformerConfig, build_model, config_of
from tfnlp.utils.errors import InputError


def make_translator_student(
    teacher, num_layers=None, num_decoder_layers=None, layer_map="uniform", dropout=None
):
    """Build a Transformer of fewer layers, with weights of layers of its teacher.

    Args:
        teacher: a Transformer or Marian, with the head "sequence_to_sequence".
        num_layers: the student's encoder blocks; as many as the teacher's where None.
        num_decoder_layers: its decoder blocks; as many as the teacher's where None.
        layer_map: the choice of the teacher's blocks, for both encoder and decoder: "uniform",
            "last", "first" or "alternate" (`distill.learning.layer_map`).
        dropout: the student's; the teacher's where None.

    Returns:
        A `TextModel`.

    Raises:
        InputError: if the teacher is of another family, or has fewer layers than asked for.
    """
    config = config_of(teacher)
    if not isinstance(config, TransformerConfig):
        raise InputError(
            f"The teacher is a {teacher.name}, but this student has the layers of a Transformer; "
            "give a Transformer or a Marian."
        )
    teacher_layers = {"encoder": config.num_layers, "decoder": config.decoder.num_layers}
    layers = {
        "encoder": num_layers or teacher_layers["encoder"],
        "decoder": num_decoder_layers or teacher_layers["decoder"],
    }
    for part, count in teacher_layers.items():
        if layers[part] > count:
            raise InputError(
                f"The student's {part} has {layers[part]} layers, but the teacher's {count}; give "
                "it as many at most."
            )
    maps = {
        part: resolve_layer_map(layer_map, teacher_layers[part], layers[part]) for part in layers
    }
    fields = {"num_layers": layers["encoder"], "num_decoder_layers": layers["decoder"]}
    if dropout is not None:
        fields["dropout"] = dropout
    student = build_model(dataclasses.replace(config, **fields), teacher.head)
    sources = {weight.path: weight for weight in teacher.weights}
    for weight in student.weights:
        weight.assign(sources[_teacher_path(weight.path, maps)])
    return student


def _teacher_path(path, maps):
    """Return the path of the teacher's weight that a student's weight starts from."""
    layer, _, rest = path.partition("/")
    part, _, number = layer.rpartition("_")
    if part not in maps or not number.isdecimal():
        return path
    return f"{part}_{maps[part][int(number)]}/{rest}"
