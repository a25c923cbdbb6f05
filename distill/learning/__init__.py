"""A student learns from its teacher."""

from distill.learning.distill import distill
from distill.learning.distiller import Distiller
from distill.learning.layer_map import check_layer_map, even_layer_map
from distill.learning.losses import make_losses
from distill.learning.student import make_student
from distill.learning.teacher import load_teacher, read_teacher_labels

__all__ = [
    "Distiller",
    "check_layer_map",
    "distill",
    "even_layer_map",
    "load_teacher",
    "make_losses",
    "make_student",
    "read_teacher_labels",
]
