"""Importing, from another folder and in a process of its own."""

import subprocess
import sys

import pytest


def run(code, folder):
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=folder
    ).stdout


@pytest.mark.quick
def test_import_loads_no_framework(tmp_path):
    code = "import sys, tfnlp; print({'keras', 'tensorflow', 'torch'} & set(sys.modules))"
    assert run(code, tmp_path) == "set()\n"


def test_layers_import_from_another_folder_without_the_rest(tmp_path):
    code = (
        "import sys\n"
        "from tfnlp.layers import EncoderBlock\n"
        "print([m for m in ('tfnlp.text', 'tokenizers', 'keras_hub') if m in sys.modules])"
    )
    assert run(code, tmp_path) == "[]\n"


def test_runtime_needs_no_tensorflow(tmp_path):
    code = "import sys, distill.runtime; print({'keras', 'tensorflow'} & set(sys.modules))"
    assert run(code, tmp_path) == "set()\n"
