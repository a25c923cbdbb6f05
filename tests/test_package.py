"""Importing, from another folder and in a process of its own."""

import pathlib
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


def test_kept_scores_are_of_the_same_settings(tmp_path):
    """Another rate, task or file in a benchmark's folder once gave the scores that were there."""
    code = (
        "import sys\n"
        "from benchmarks import finetune_parity as parity\n"
        "from tfnlp.utils.errors import InputError\n"
        "parity.FLAGS(sys.argv)\n"
        "rate = parity.FLAGS.learning_rate\n"
        "try:\n"
        "    print(parity.best_scores('a.json', {'x': lambda: [rate, parity.FLAGS.seed / 4]}))\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    paths = {name: tmp_path / name for name in ("train", "dev", "output_dir")}
    for name in ("train", "dev"):
        paths[name].write_text(name)
    flags = ["--model_dir=m", *(f"--{name}={path}" for name, path in paths.items())]

    def last_line(*more):
        return run(code, pathlib.Path(__file__).parents[1], *flags, *more).splitlines()[-1]

    assert last_line("--learning_rate=0.125", "--seeds=2") == "{'x': [0.125, 0.25]}"
    assert last_line("--learning_rate=0.125", "--seeds=1") == "{'x': [0.125]}"
    assert "there learning_rate is 0.125, here 0.5;" in last_line("--learning_rate=0.5")
    said = last_line("--learning_rate=0.125", "--task=tagger")
    assert "there task is 'classifier', here 'tagger'" in said
    paths["dev"].write_text("another")
    assert "there dev (SHA-256) is" in last_line("--learning_rate=0.125")
