"""Golden outputs: what LiteRT gives for each input."""

import dataclasses
import json

import numpy as np
import pytest

from distill.export.golden_outputs import write_golden
from distill.runtime import load_runner
from tests.distill.conftest import HEADS, INPUTS
from tfnlp.pipelines import predict_inputs
from tfnlp.text import Encoding


@pytest.mark.parametrize("kind", HEADS)
def test_golden_outputs_are_those_of_the_file(kind, files, tmp_path):
    runner, path = load_runner(files[kind]), tmp_path / "golden.json"
    write_golden(path, runner, INPUTS[kind])
    content = json.loads(path.read_text())
    assert (content["kind"], content["max_length"]) == (kind, 24)
    assert content["settings"] == runner.settings
    expected = predict_inputs(runner, INPUTS[kind])
    assert len(content["inputs"]) == len(expected) == 5
    for given, answer in zip(content["inputs"], expected, strict=True):
        assert given["answer"] == (answer if kind == "scorer" else _as_json(answer))
        for row in given["rows"]:
            (again,) = runner.backend.run([Encoding(row["ids"], row["segment_ids"])])
            assert again.keys() == row["outputs"].keys()
            for name, value in again.items():
                np.testing.assert_array_equal(value, np.array(row["outputs"][name], "float32"))
    counts = [len(given["rows"]) for given in content["inputs"]]
    assert counts == {"chooser": [2] * 5}.get(kind, counts)
    assert (max(counts) > 1) == (kind in ("chooser", "answerer"))  # windows


def _as_json(answer):
    return json.loads(json.dumps(dataclasses.asdict(answer)))
