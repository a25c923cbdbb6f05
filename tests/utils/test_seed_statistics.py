"""Figures over seeds, as numbers and as a plot."""

import math

import pytest

from tfnlp.plots import draw_variants
from tfnlp.utils.seed_statistics import summarise_variants


def test_figures_of_variants_are_paired_by_seed():
    runs = {
        "base": {0: {"x": 1.0}, 1: {"x": 2.0}, 2: {"x": 6.0}},
        "more": {0: {"x": 1.5}, 1: {"x": 3.5}, 3: {"x": 100.0}},
        "none": {0: {"y": 1.0}},
    }
    found = summarise_variants(runs, "base", ["x"])
    base = found["base"]["x"]
    assert (base.estimate.mean, base.estimate.count, base.difference) == (3.0, 3, None)
    assert base.estimate.error == pytest.approx(math.sqrt((4 + 1 + 9) / 2 / 3))
    more = found["more"]["x"]
    assert (more.difference.mean, more.difference.error, more.difference.count) == (1.0, 0.5, 2)
    assert found["none"]["x"].estimate is None and found["none"]["x"].difference is None
    (axes,) = draw_variants(runs, found, "base").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["base", "more", "none"]
    assert list(axes.lines[0].get_xdata()) == [1.0, 2.0, 6.0]
