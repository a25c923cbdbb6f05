"""Characters without a font, and tokens that look like mathematics."""

import numpy as np
import pytest

from tfnlp.plots import fonts
from tfnlp.plots.alignments import plot_alignments

pytest.importorskip("matplotlib")


def test_characters_without_a_font_are_warned_of(tmp_path, monkeypatch, caplog):
    weights, path = {"": np.eye(2)}, tmp_path / "a.png"
    # What Matplotlib brings itself has no such character, a font that is installed may.
    monkeypatch.setattr(fonts, "KOREAN", ("no such font", "STIXGeneral"))
    assert fonts.font_families("monospace") == ["monospace", "STIXGeneral"]
    assert plot_alignments(weights, ["\u3400", "a"], ["b", "\u3401"], path)
    assert f"{path} shows boxes for 2 characters that no installed font has" in caplog.text
    caplog.clear()
    assert plot_alignments(weights, ["a", "c"], ["b", "d"], path) and not caplog.text


def test_tokens_are_not_parsed_as_mathematics(tmp_path):
    assert plot_alignments({"": np.eye(2)}, ["$$", "a"], ["b", r"$\q$"], tmp_path / "a.png")
