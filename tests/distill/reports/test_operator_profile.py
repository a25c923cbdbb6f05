"""Profiles of a file's operators."""

import pytest

from distill.reports.operator_profile import profile_operators, summarise_events
from tfnlp.utils.errors import InputError


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


def test_a_file_without_a_profile_is_one_sentence(tmp_path):
    path = tmp_path / "model.tflite"
    with pytest.raises(InputError, match=r"model\.tflite does not exist"):
        profile_operators(path)
    path.write_bytes(b"junk" * 100)
    with pytest.raises(InputError, match=r"model\.tflite: .*gives no profile of it \("):
        profile_operators(path)
