import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest

from tfnlp.models import get_layout_map
from tfnlp.utils.errors import InputError

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def runs():
    """Keras takes its backend, and JAX its devices, once: this is another process."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("no jax; pip install jax")
    settings = {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    # What is compiled runs a few times.
    settings |= {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    settings |= {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    result = subprocess.run(
        [sys.executable, pathlib.Path(__file__).with_name("layout_runs.py")],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_four_devices_train_as_one(runs):
    one, four = runs["losses"]["one"], runs["losses"]["four"]
    assert one[-1] < one[0] - 0.1
    np.testing.assert_allclose(four, one, rtol=0, atol=1e-5)
    assert runs["sums"] == ["all-reduce"] * 3  # two in a block, one in the embeddings
    assert "no 'model'" in runs["refusal"]  # of a mesh without the axis


def test_a_device_holds_its_part_of_matrices_and_of_the_optimizers_state(runs):
    split = ("query", "key", "value", "intermediate", "token_table", "lm_bias")
    split += ("output_kernel", "output/kernel")
    for family, pieces in runs["pieces"].items():
        whole = [path for path, piece in pieces.items() if piece == 1]
        assert all(piece == 0.5 for path, piece in pieces.items() if path not in whole)
        assert not [path for path in whole if any(name in path for name in split)]
        # Of each: the variable, and the optimizer's two averages.
        count = {"bert": 11 + 1, "gpt": 11, "deberta_v3": 11 + 1}[family]
        assert len(pieces) - len(whole) == 3 * count
    assert set(runs["pieces of data"].values()) == {1}
    quarters = [x for x in runs["pieces of both"].values() if x == 0.25]
    assert len(quarters) == 3 * 7  # four of attention, two of the network, the token table
    # Other families split all matrices of their blocks.
    assert len(runs["whole"]) == 6
    assert not any(runs["whole"].values())


def test_other_backends_are_refused():
    mesh = keras.distribution.DeviceMesh((1,), ("model",), devices=["cpu:0"])
    with pytest.raises(InputError, match="KERAS_BACKEND=jax"):
        get_layout_map(mesh)
