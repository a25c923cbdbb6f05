"""Profiles of a file's operators."""

import pytest

from benchmarks.operator_profile import print_operators, profile_operators, summarise_events
from distill.export.options import Export
from distill.export.tflite import export_tflite
from tfnlp.models import build_model


def test_events_become_the_time_of_each_operator():
    # Runs of 10 microseconds, two pieces in XNNPACK with one operator of LiteRT between; and one
    # in which the machine did something else.
    run = [("Invoke", 1, 10), ("Dense", 8, 2), ("Add", 8, 1), ("RESHAPE", 2, 3), ("Dense", 8, 1)]
    slow = [("Invoke", 1, 9000), ("Dense", 8, 8990), ("RESHAPE", 2, 3), ("Dense", 8, 1)]
    found = summarise_events([("Start", 1, 500), *run, *slow, *run, ("Start", 1, 500), *slow], 16)
    assert (found["length"], found["pieces"]) == (16, 2)
    assert found["ms"] == pytest.approx(0.010)
    rows = {
        r["operator"]: (r["runs_in"], r["calls"], round(r["ms"], 6)) for r in found["operators"]
    }
    assert rows == {
        "Dense": ("XNNPACK", 2, 0.003),
        "RESHAPE": ("LiteRT", 1, 0.003),
        "(between operators)": ("", 1, 0.003),
        "Add": ("XNNPACK", 1, 0.001),
    }


def test_a_profile_counts_the_operators_of_a_file(tiny_config, tokenizer, tmp_path, capsys):
    path = tmp_path / "model.tflite"
    model = build_model(tiny_config, "classifier", 2)
    export_tflite(model, path, tokenizer, ["bad", "good"], Export("int8", max_length=40))
    profile = profile_operators(path, length=64, runs=3)
    assert profile["length"] == 40 and profile["pieces"] >= 1
    operators = {row["operator"]: row for row in profile["operators"]}
    assert {row["runs_in"] for row in operators.values()} == {"XNNPACK", "LiteRT", ""}
    # 3 blocks of 6 dense layers, the pooler and the classifier.
    dense = [row["calls"] for name, row in operators.items() if name.startswith("Fully Conn")]
    assert sum(dense) == 3 * 6 + 2
    assert sum(row["ms"] for row in operators.values()) == pytest.approx(profile["ms"], rel=1e-6)
    row = {"operator": "Fully Connected", "runs_in": "XNNPACK", "calls": 7.0, "ms": 1.5}
    print_operators({"ms": 2.0, "pieces": 3, "length": 32, "operators": [row]})
    said = capsys.readouterr().out
    assert "the profiler on; 75% of it in XNNPACK, in 3 groups of operators\n" in said
    assert "1.500 ms  75.0%      7 calls  XNNPACK Fully Connected" in said
