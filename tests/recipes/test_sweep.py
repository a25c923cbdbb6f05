"""The recipe of sweeps, from the shell."""

import subprocess
import sys

from recipes.sweeps import sweep_file


def run_recipe(*flags):
    return subprocess.run(
        [sys.executable, "-m", "recipes.sweep", *flags],
        check=False,
        capture_output=True,
        text=True,
        cwd=sweep_file.__file__.rpartition("/recipes/")[0],
    )


def test_the_recipe_says_so_with_status_2(write_sweep, tmp_path):
    path = write_sweep('{"variants": {"a": {}, "a": {}}}', "sweep.json")
    done = run_recipe(f"--sweep={path}", f"--output_dir={tmp_path}/o")
    twice = "'a' is there twice; give each name once"
    said = f"Error: {path}, line 1: not valid YAML ({twice}).\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert not (tmp_path / "o").exists()
