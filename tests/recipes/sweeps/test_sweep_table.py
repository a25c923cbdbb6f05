"""The table of a sweep, from the figures of its runs."""

import re
import types

from recipes.sweeps import sweep_table

SIZE = {"parameters": 5000}
FIGURES = {
    "a": [SIZE | {"dev_accuracy": 0.5, "test_x": -12.0}, SIZE | {"dev_accuracy": 0.6}],
    "b": [SIZE | {"dev_accuracy": 0.75, "test_x": 9.0}, SIZE | {"test_x": 1.5}],
    "none": [None, None],
}


def test_means_differ_from_the_base_by_seed(monkeypatch, tmp_path, capsys):
    runs = [
        types.SimpleNamespace(variant=variant, number=number, figures=figures)
        for variant, of_variant in FIGURES.items()
        for number, figures in enumerate(of_variant)
    ]
    kept = {"variants": FIGURES, "base": "a", "unit": "seed", "metrics": None, "path": "sweep"}
    sweep = types.SimpleNamespace(**kept, runs=lambda folder: runs)
    monkeypatch.setattr(sweep_table, "read_figures", lambda run: run.figures)
    monkeypatch.setattr(sweep_table, "plot_variants", lambda *_: None)
    sweep_table.write_table(sweep, tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert [re.split(r"  +", line.strip()) for line in lines[:4]] == [
        ["variant", "runs", "dev_accuracy", "test_x", "parameters"],
        ["a (base)", "2", "0.5500 ± 0.0500", "-12.00 of 1", "5,000"],
        ["b", "2", "0.7500 of 1 (+0.2500)", "5.2500 ± 3.7500 (+21.00 of 1)", "5,000 (+0.0000)"],
        ["none", "0", "-", "-", "-"],
    ]
    rows = [line.split("\t") for line in (tmp_path / "table.tsv").read_text().splitlines()]
    found = dict(zip(rows[0], rows[2], strict=True))
    numbers = ("", "_error", "_seeds", "_difference", "_difference_error", "_difference_seeds")
    due = ["5.25", "3.75", "2", "21", "", "1"]
    assert [found[f"test_x{number}"] for number in numbers] == due
    rows = [line.split("\t") for line in (tmp_path / "runs.tsv").read_text().splitlines()]
    assert rows[0] == ["variant", "seed", "parameters", "dev_accuracy", "test_x"]
    assert rows[1:] == [
        ["a", "0", "5000", "0.5", "-12"],
        ["a", "1", "5000", "0.6", ""],
        ["b", "0", "5000", "0.75", "9"],
        ["b", "1", "5000", "", "1.5"],
    ]
