"""Layer maps by name, and those that do not fit."""

import pytest

from distill.learning.layer_map import (
    check_layer_map,
    even_layer_map,
    last_layer_map,
    resolve_layer_map,
)
from tfnlp.utils.errors import InputError


def test_layer_maps():
    assert even_layer_map(12, 4) == [2, 5, 8, 11]
    assert even_layer_map(6, 3) == [1, 3, 5]
    assert even_layer_map(6, 4) == [0, 2, 3, 5]
    assert resolve_layer_map("uniform", 12, 4) == [2, 5, 8, 11]
    assert resolve_layer_map("last", 12, 4) == [8, 9, 10, 11]
    assert resolve_layer_map((0, 3), 6, 2) == [0, 3]
    with pytest.raises(ValueError, match="num_layers=7"):
        last_layer_map(6, 7)
    with pytest.raises(ValueError, match="num_layers=7"):
        even_layer_map(6, 7)
    with pytest.raises(ValueError, match="has 2 entries"):
        check_layer_map([1, 2], 6, 3)
    with pytest.raises(ValueError, match="names layer 6"):
        check_layer_map([1, 3, 6], 6, 3)


def test_layers_that_stay_when_others_are_dropped():
    assert resolve_layer_map("first", 6, 4) == [0, 1, 2, 3]
    assert resolve_layer_map("alternate", 12, 8) == [0, 1, 2, 3, 5, 7, 9, 11]
    halves = [resolve_layer_map(name, 12, 6) for name in ("alternate", "uniform")]
    assert halves == [[1, 3, 5, 7, 9, 11]] * 2
    assert resolve_layer_map("alternate", 6, 6) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(InputError, match="num_layers=5 of 12 are fewer than half"):
        resolve_layer_map("alternate", 12, 5)
    with pytest.raises(InputError, match="num_layers=7 must lie between 1 and"):
        resolve_layer_map("first", 6, 7)
