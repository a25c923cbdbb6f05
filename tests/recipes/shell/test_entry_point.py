"""The entry point of the recipes."""

import errno
import importlib.metadata
import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import tomllib

import pytest
import tensorflow as tf

from recipes.shell import entry_point
from tests.recipes.processes import command
from tests.requirements import installed_modules, read_requirements

ROOT = pathlib.Path(__file__).parents[3]
CODE = """
import psutil
from recipes.shell.entry_point import keep_freed_memory

process = psutil.Process()
{call}
before = process.memory_info().rss
block = b"1" * 48_000_000
del block
print(process.memory_info().rss - before)
"""


def test_a_freed_block_stays_with_the_process():
    calls = {"keep_freed_memory()": platform.libc_ver()[0] == "glibc", "": False}
    for call, kept in calls.items():
        command = [sys.executable, "-c", CODE.format(call=call)]
        held = int(subprocess.check_output(command, cwd=ROOT))
        assert (held > 47e6) == kept


def test_a_reader_that_stops_ends_a_recipe_quietly():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "recipes.pretrain", "--help"]
    done = subprocess.run(
        command, check=False, stdout=writing, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("folder, name", [("recipes", "pretrain"), ("benchmarks", "kills")])
def test_the_command_that_resumes_is_the_one_that_was_stopped(monkeypatch, folder, name):
    given = ["--overwrite", "-overwrite", "--overwrite=true", "--output_dir=a b"]
    words = [str(ROOT / folder / f"{name}.py"), *given]
    monkeypatch.setattr(sys, "argv", words)
    assert entry_point.resuming_command() == f"python -m {folder}.{name} '--output_dir=a b'"


def test_ended_memory_and_a_full_disk_are_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(entry_point, "check_files", lambda: None)
    monkeypatch.setattr(entry_point, "check_columns", lambda: None)
    monkeypatch.setattr(os, "_exit", sys.exit)

    def fails(error):
        def main():
            raise error

        with pytest.raises(SystemExit, match="2"):
            entry_point.run_main(main)
        (line,) = capsys.readouterr().err.splitlines()
        return line

    exhausted = tf.errors.ResourceExhaustedError
    for number, kind in ((errno.ENOSPC, exhausted), (errno.EFBIG, tf.errors.OutOfRangeError)):
        why = os.strerror(number)
        for error in (OSError(number, why), kind(None, None, f"/tmp/a; {why} [Op:SaveV2]")):
            assert f"could not be written ({why})" in fails(error)
    behind = ValueError("no array")
    behind.__cause__ = MemoryError("4 MiB")
    oom = exhausted(None, None, "OOM when allocating tensor")
    for error in (MemoryError("4 MiB"), oom, behind, OSError(errno.ENOMEM, "no memory")):
        assert "Memory ran out; lower" in fails(error)
    end = tf.errors.OutOfRangeError(None, None, "End of sequence")  # of the data, say
    told = ValueError("a fault of its own")  # raised `from None`
    told.__context__, told.__suppress_context__ = MemoryError("4 MiB"), True
    for error in (end, PermissionError(errno.EACCES, "not yours"), told):
        with pytest.raises(type(error)):
            fails(error)


def test_above_a_limit_of_file_size_nothing_that_was_there_is_lost(
    exported, student, corpus, tmp_path
):
    def stopped(recipe, *flags):
        done = subprocess.run(
            command(recipe, *flags),
            check=False,
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000)),
        )
        *_, line = done.stderr.splitlines()
        assert done.returncode == 2 and "could not be written (File too large)" in line

    path, best = exported[0] / "model.tflite", student[0] / "best"
    before = path.read_bytes()
    stopped("export_tflite", f"--model_dir={best}", f"--output_dir={path.parent}", "--overwrite")
    assert path.read_bytes() == before
    texts = [f"--input={corpus[0].removeprefix('--train=')}", "--text_column=sentence"]
    stopped("prepare_corpus", *texts, f"--tokenizer_dir={best}", f"--output_dir={tmp_path}/ids")
    assert [file.name for file in (tmp_path / "ids").iterdir()] == ["settings.json"]


# What training alone does not install is not there.
TRAINING_ALONE = """
import json, runpy, sys

refused = {*json.loads(sys.argv.pop(1))}

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Finder())
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__")
"""


def test_what_trains_alone_needs_none_of_the_other_requirements(corpus, tmp_path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [
        line.replace("tensorflow-cpu", "tensorflow") for line in read_requirements("training.txt")
    ]
    assert {*requirements} < {*project["dependencies"]}
    ours = {"distill", "recipes", "tfnlp", *installed_modules(requirements)}
    refused = sorted(importlib.metadata.packages_distributions().keys() - ours)
    assert {*entry_point.NOT_FOR_TRAINING, "matplotlib"} < {*refused}
    assert {*entry_point.NOT_FOR_TRAINING} < {*installed_modules(project["dependencies"])}

    def run(recipe, *flags):
        words = [json.dumps(refused), f"recipes.{recipe}", *flags]
        command = [sys.executable, "-c", TRAINING_ALONE, *words]
        return subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)

    flags = ["--num_layers=1", "--hidden_dim=16", "--num_heads=1", "--vocabulary_size=300"]
    done = run("finetune_classifier", *corpus, *flags, "--epochs=1", f"--output_dir={tmp_path}/a")
    assert done.returncode == 0, done.stderr
    folder = f"--model_dir={tmp_path}/a/best"
    done = run("export_tflite", folder, f"--output_dir={tmp_path}/b")
    assert done.returncode == 2 and "`pip install .` in the clone" in done.stderr


def test_only_what_the_package_installs_is_said_to_be_installed_with_it(monkeypatch, capsys):
    monkeypatch.setattr(entry_point, "check_files", lambda: None)
    monkeypatch.setattr(entry_point, "check_columns", lambda: None)

    def load(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    with pytest.raises(SystemExit):
        entry_point.run_main(lambda: load("psutil"))
    assert "psutil is not installed, which this needs; `pip install" in capsys.readouterr().err
    for name in ("tfnlp.text.linse", "recipes", "keras.src.engine", "jsno", "psutil.reeder"):
        with pytest.raises(ModuleNotFoundError, match=f"No module named '{name}'"):
            entry_point.run_main(lambda name=name: load(name))


@pytest.mark.parametrize("encoding", ["cp949", "ascii", "cp1252"])
def test_characters_that_the_console_lacks_are_escaped(encoding):
    code = "from recipes.shell import entry_point; entry_point.run(lambda: print('좋은 😀'))"
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, env=environment)
    assert done.stdout.strip() == "좋은 😀".encode(encoding, "backslashreplace")
