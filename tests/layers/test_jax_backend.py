import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def test_layers_run_on_the_jax_backend():
    """Keras takes its backend once, at import, so this is another process."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("no jax; pip install jax")
    result = subprocess.run(
        [sys.executable, pathlib.Path(__file__).with_name("jax_smoke.py")],
        # What is compiled runs but once.
        env=os.environ
        | {"KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT)}
        | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "all layers ran on JAX" in result.stdout
