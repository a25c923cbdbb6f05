"""The entry point of the recipes."""

import os
import pathlib
import platform
import subprocess
import sys

import pytest

from recipes import entry_point

ROOT = pathlib.Path(__file__).parents[2]
CODE = """
import psutil
from recipes.entry_point import keep_freed_memory

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
