"""Files of earlier versions open, and give the numbers of the version that saved them."""

import json
import pathlib

import numpy as np
import pytest

from tests.release.saved_files import found_in

VERSIONS = sorted(pathlib.Path(__file__).parent.glob("files_of_*"))
CASES = {f"{folder.name}/{name}": folder for folder in VERSIONS for name in found_in(folder)}
# Integers and labels are equal; of the others processors differ in the last bits, and of int8
# in a step of rounding.
TOLERANCES = {"file": 2e-3, "run": 2e-5}


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def compare(found, expected, tolerance):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            compare(one, other, tolerance)
    elif isinstance(expected, float):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    else:
        assert found == expected


@pytest.mark.parametrize("case", CASES)
def test_a_saved_file_gives_the_numbers_that_it_gave(case, tmp_path):
    folder, name = CASES[case], case.partition("/")[2]
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    assert expected.keys() == found_in(folder).keys()
    path, read = found_in(folder)[name]
    before = contents(folder)
    found = read(path, tmp_path)
    compare(found, expected[name], TOLERANCES.get(name, 1e-4))
    assert contents(folder) == before  # a cache that does not fit would be computed anew
