"""Curves show like with like, characters have their token's colour, and fonts their characters."""

import math
import types

import numpy as np
import pytest

from tfnlp import plots
from tfnlp.baselines import WordVectors
from tfnlp.plots import figures

pytest.importorskip("matplotlib")


def panels(metrics, metric):
    """{label of the panel: {label of the line: values}}."""
    figure = plots.draw_curves(metrics, metric)
    return {
        axes.get_ylabel(): {line.get_label(): list(line.get_ydata()) for line in axes.lines}
        for axes in figure.axes
    }


def test_each_loss_of_a_distillation_has_its_panel(tmp_path):
    same = {"time": 1.0, "hard_label_loss": 0.8, "soft_label_loss": 2.0, "learning_rate": 1e-4}
    same |= {"val_hard_label_loss": 0.9, "val_word_accuracy": 0.5}
    metrics = [{"epoch": n, "loss": 9.0 - n, "val_f1": 0.1 * n} | same for n in (1, 2)]
    found = panels(metrics, "f1")
    assert next(iter(found)) == "loss"
    assert found == {
        "loss": {"train": [8.0, 7.0]},
        "hard label loss": {"train": [0.8, 0.8], "dev": [0.9, 0.9]},
        "soft label loss": {"train": [2.0, 2.0]},
        "f1": {"dev": [0.1, 0.2]},
    }
    assert plots.plot_curves(metrics, tmp_path / "curves.png", "f1")
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


def test_each_character_has_its_tokens_colour(tmp_path, monkeypatch):
    import matplotlib

    monkeypatch.setattr(figures, "LINE", 4)
    tokens, values = ["ab", "\n", "$c$de", "f"], [-1.0, 0.0, 1.0, 0.5]
    figure = plots.draw_activations(tokens, values)
    colours = matplotlib.colormaps["RdBu"]
    shown = {}
    for patch, text in zip(figure.axes[0].patches, figure.axes[0].texts, strict=True):
        place = tuple(int(x) for x in patch.get_xy())
        shown[place] = text.get_text(), patch.get_facecolor(), text.get_color()
    expected = {
        (0, 0): ("a", -1),
        (1, 0): ("b", -1),
        (2, 0): (" ", 0),
        **{(i, 1): (character, 1) for i, character in enumerate("$c$d")},
        (0, 2): ("e", 1),
        (1, 2): ("f", 0.5),
    }
    ink = {-1: "white", 0: "black", 0.5: "black", 1: "white"}
    for place, (character, value) in expected.items():
        assert shown[place] == (character, colours((1 + value) / 2), ink[value])
    assert len(shown) == len(expected)
    assert plots.plot_activations(tokens, values, tmp_path / "text.png")
    assert (tmp_path / "text.png").stat().st_size > 500
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        plots.draw_activations(tokens, [1.0])


def test_hidden_states_are_those_of_the_units_that_vary_most(tmp_path):
    states = np.array([[0.0, 0.5, 0.1, 0.9], [0.0, -0.5, 0.2, 0.3], [0.0, 0.0, 0.1, 0.0]])
    states = np.concatenate([states, -states[:, 3:]], 1)
    figure = plots.draw_hidden_states(["a", "b ", "\n"], states, units=3)
    axes = figure.axes[0]
    # By the place of their highest value: units 1 and 3 at the first token, 4 at the last.
    units = [int(label.get_text()) for label in axes.get_yticklabels()]
    assert sorted(units[:2]) == [1, 3] and units[2:] == [4]
    np.testing.assert_array_equal(axes.images[0].get_array(), states[:, units].T)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b␣", "⏎"]
    assert plots.plot_hidden_states(["$a$", "b"], states[:2], tmp_path / "states.png")
    with pytest.raises(ValueError, match="2 tokens, but 3 states"):
        plots.draw_hidden_states(["a", "b"], states)


def test_characters_without_a_font_are_warned_of(tmp_path, monkeypatch, caplog):
    weights, path = {"": np.eye(2)}, tmp_path / "a.png"
    # What Matplotlib brings itself has no such character, a font that is installed may.
    monkeypatch.setattr(figures, "KOREAN", ("no such font", "STIXGeneral"))
    assert plots.font_families("monospace") == ["monospace", "STIXGeneral"]
    assert plots.plot_alignments(weights, ["\u3400", "a"], ["b", "\u3401"], path)
    assert f"{path} shows boxes for 2 characters that no installed font has" in caplog.text
    caplog.clear()
    assert plots.plot_alignments(weights, ["a", "c"], ["b", "d"], path) and not caplog.text


def test_tokens_are_not_parsed_as_mathematics(tmp_path):
    assert plots.plot_alignments({"": np.eye(2)}, ["$$", "a"], ["b", r"$\q$"], tmp_path / "a.png")


def test_words_of_a_map_do_not_cover_each_other(tmp_path):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 8)).repeat(10, 0)
    noise = 1e-3 * rng.normal(size=(30, 8))
    vectors = WordVectors([f"word_${i}$" for i in range(30)], centres + noise)
    figure = plots.draw_word_map(vectors, 30)
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert 3 <= len(boxes) < 30 and figure.axes[0].texts[0].get_text() == "word_$0$"
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    # The words of a group are nearer to each other than to those of another one.
    points = np.stack(figure.axes[0].lines[0].get_data(), 1).reshape(3, 10, 2)
    middles = points.mean(1)
    spread = np.linalg.norm(points - middles[:, None], axis=-1).max()
    assert spread < min(np.linalg.norm(middles[i] - middles[i - 1]) for i in range(3)) / 2
    assert plots.plot_word_map(vectors, tmp_path / "map.png", 2)


def test_bars_are_the_shares_of_each_task(tmp_path):
    shares = {"runs/a": [0.5, 0.3, 0.2], "runs/b": [0.1, 0.2, 0.7]}
    (axes,) = plots.draw_layer_shares(shares).axes
    heights = [bar.get_height() for bars in axes.containers for bar in bars]
    assert heights == [0.5, 0.1, 0.3, 0.2, 0.2, 0.7]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["runs/\na", "runs/\nb"]
    assert plots.plot_layer_shares(shares, tmp_path / "a.png")


def test_paths_are_drawn_with_weights_and_the_direction_of_relations(tmp_path):
    long = "superconducting_supercollider_laboratory.n.01"
    paths = [
        (0.7, ["driver.n.01", "person.n.01", long], ["hypernym", "-derivationally_related_form"]),
        (0.3, ["a", "b"], ["IsA"]),
    ]
    endings = [
        types.SimpleNamespace(ending="walked on.", probability=0.75, paths=paths),
        types.SimpleNamespace(ending="found $peace$.", probability=0.25, paths=[]),
    ]
    figure = plots.draw_paths("The driver stopped. " * 9, endings, most=1)
    (axes,) = figure.axes
    texts = [text.get_text() for text in axes.texts if text.get_text()]
    assert texts[0].count("\n") > 1 and texts[0].split() == ("The driver stopped. " * 9).split()
    assert texts[1:] == [
        *("75%  walked on.", "0.70", "driver.n.01", "person.n.01"),
        "superconducting\nsupercollider\nlaboratory.n.01",
        *("hypernym", "derivationally\nrelated form"),
        *("25%  found $peace$.", "no path: by its text alone"),
    ]
    arrows = [t.arrow_patch.get_arrowstyle() for t in axes.texts if hasattr(t, "arrow_patch")]
    assert [type(arrow).__name__ for arrow in arrows] == ["CurveB", "CurveA"]
    assert plots.plot_paths("She", endings, tmp_path / "paths.png")
    assert plots.plot_paths("She", endings[1:], tmp_path / "none.png")
