import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def test_a_dry_run_times_each_library(tmp_path):
    """Keras takes its backend once, at import, so this is another process."""
    for module in ("jax", "torch", "transformers"):
        pytest.importorskip(module)
    command = [sys.executable, "-m", "benchmarks.gpu", "--tiny", "--nocompile", "--families=bert"]
    command += ["--blocks=deberta_v3", f"--output_dir={tmp_path}"]
    settings = {"KERAS_BACKEND": "jax", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    result = subprocess.run(
        command, env=os.environ | settings, cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    figures = json.loads((tmp_path / "gpu.json").read_text("utf-8"))
    assert figures.pop("backend") == "jax" and "dry run" in figures.pop("device")
    libraries = {label: set(times) for label, times in figures.items()}
    assert libraries == {
        "block deberta_v3 2x16 float32": {"tfnlp", "transformers"},
        "family bert 2x16 float32": {"tfnlp", "keras-hub", "transformers"},
    }
    assert all(ms > 0 for times in figures.values() for pair in times.values() for ms in pair)
