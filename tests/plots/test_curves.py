"""Curves show like with like: training and dev of one name in one panel, each loss in its own."""

import math

import pytest

from tfnlp.plots.curves import draw_curves, plot_curves

pytest.importorskip("matplotlib")


def panels(metrics, metric):
    """{label of the panel: {label of the line: values}}."""
    figure = draw_curves(metrics, metric)
    return {
        axes.get_ylabel(): {line.get_label(): list(line.get_ydata()) for line in axes.lines}
        for axes in figure.axes
    }


def test_each_loss_of_a_distillation_has_its_panel(tmp_path):
    metrics = [
        {
            "epoch": epoch,
            "time": 1.0,
            "hard_label_loss": 0.8,
            "loss": 9.0 - epoch,
            "soft_label_loss": 2.0,
            "val_hard_label_loss": 0.9,
            "val_f1": 0.1 * epoch,
            "val_word_accuracy": 0.5,
            "learning_rate": 1e-4,
        }
        for epoch in (1, 2)
    ]
    found = panels(metrics, "f1")
    assert next(iter(found)) == "loss"
    assert found == {
        "loss": {"train": [8.0, 7.0]},
        "hard label loss": {"train": [0.8, 0.8], "dev": [0.9, 0.9]},
        "soft label loss": {"train": [2.0, 2.0]},
        "f1": {"dev": [0.1, 0.2]},
    }
    assert plot_curves(metrics, tmp_path / "curves.png", "f1")
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_one_loss_has_one_panel_and_non_finite_numbers_leave_a_gap():
    metrics = [
        {"epoch": 1, "loss": 0.5, "val_loss": 0.6, "accuracy": 0.7, "val_accuracy": None},
        {"epoch": 2, "loss": 0.4, "val_loss": 0.5, "accuracy": 0.8, "val_accuracy": 0.9},
    ]
    found = panels(metrics, "accuracy")
    assert found["loss"] == {"train": [0.5, 0.4], "dev": [0.6, 0.5]}
    gap, value = found["accuracy"]["dev"]
    assert math.isnan(gap) and value == 0.9
