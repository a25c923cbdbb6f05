"""The text coloured by a cell's activation."""

import pytest

from tfnlp.plots import cell_activations as activation_plots

pytest.importorskip("matplotlib")


def test_each_character_has_its_tokens_colour(tmp_path, monkeypatch):
    import matplotlib

    monkeypatch.setattr(activation_plots, "LINE", 4)
    tokens, values = ["ab", "\n", "$c$de", "f"], [-1.0, 0.0, 1.0, 0.5]
    figure = activation_plots.draw_activations(tokens, values)
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
    assert activation_plots.plot_activations(tokens, values, tmp_path / "text.png")
    assert (tmp_path / "text.png").stat().st_size > 500
    with pytest.raises(ValueError, match="There are 1 values for 4 tokens"):
        activation_plots.draw_activations(tokens, [1.0])
