"""Layer maps by name, and those that do not fit."""

import pytest

from distill.learning.layer_map import resolve_layer_map
from tfnlp.utils.errors import InputError


@pytest.mark.parametrize(
    ("layer_map", "teacher_layers", "layers"),
    [
        ("uniform", 12, [2, 5, 8, 11]),
        ("uniform", 6, [1, 3, 5]),
        ("uniform", 6, [0, 2, 3, 5]),
        ("last", 12, [8, 9, 10, 11]),
        ("first", 6, [0, 1, 2, 3]),
        ("alternate", 12, [0, 1, 2, 3, 5, 7, 9, 11]),
        ("alternate", 12, [1, 3, 5, 7, 9, 11]),
        ("uniform", 12, [1, 3, 5, 7, 9, 11]),
        ("alternate", 6, [0, 1, 2, 3, 4, 5]),
        ((0, 3), 6, [0, 3]),
    ],
)
def test_layer_maps(layer_map, teacher_layers, layers):
    assert resolve_layer_map(layer_map, teacher_layers, len(layers)) == layers


@pytest.mark.parametrize(
    ("layer_map", "teacher_layers", "student_layers"),
    [
        *((name, 6, 7) for name in ("uniform", "last", "first", "alternate")),
        ("alternate", 12, 5),  # fewer than half
        ([1, 2], 6, 3),
        ([1, 3, 6], 6, 3),
        ([-1, 3, 5], 6, 3),
    ],
)
def test_maps_that_do_not_fit_are_refused(layer_map, teacher_layers, student_layers):
    with pytest.raises(InputError, match=f"{teacher_layers} layers, .* {student_layers}"):
        resolve_layer_map(layer_map, teacher_layers, student_layers)
