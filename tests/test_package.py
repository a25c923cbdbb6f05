"""Importing, from another folder and in a process of its own."""

import subprocess
import sys

import pytest


def run(code, folder, *arguments):
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout


@pytest.mark.parametrize(
    ("imports", "others"),
    [
        ("import tfnlp", ["keras", "tensorflow", "torch"]),
        ("from tfnlp.layers import EncoderBlock", ["tfnlp.text", "tokenizers", "keras_hub"]),
        ("import distill.runtime", ["keras", "tensorflow"]),
    ],
)
def test_a_part_loads_without_the_others(imports, others, tmp_path):
    code = f"import sys; {imports}; print({{*{others}}} & {{*sys.modules}})"
    assert run(code, tmp_path) == "set()\n"
