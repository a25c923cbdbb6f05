"""Refusals of many command lines of a recipe, in one process without TensorFlow.

python tests/recipes/refusals.py RECIPE '[["--flag=value", ...], ...]'
"""

import contextlib
import importlib
import io
import json
import subprocess
import sys

from tests.recipes.processes import RECIPES


def refusals(recipe, command_lines):
    """Return the standard error of each command line; "" where it gets as far as TensorFlow.

    Args:
        recipe: its name.
        command_lines: a list of lists of flags.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.recipes.refusals", recipe, json.dumps(command_lines)],
        check=False,
        capture_output=True,
        text=True,
        cwd=RECIPES.parent,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_refusals(recipe, start, cases):
    """Assert what is said of each flags, {flags: part of the message}; "" for no refusal."""
    found = refusals(recipe, [[*start, *flags.split()] for flags in cases])
    for flags, line in zip(cases, found, strict=True):
        assert line.startswith("Error: " if cases[flags] else ""), flags
        assert line.count("\n") == bool(cases[flags]) and cases[flags] in line, (flags, line)


class Reached(BaseException):
    """TensorFlow or Keras is imported."""


class Blocker:
    """Finder of modules that raises `Reached` for TensorFlow, Keras and PyTorch."""

    def find_spec(self, name, path=None, target=None):
        if name in ("tensorflow", "keras", "torch"):
            raise Reached


def _serve(name, command_lines):
    from absl import flags

    from recipes.shell import command_line, entry_point

    sys.meta_path.insert(0, Blocker())
    recipe, refused = importlib.import_module(f"recipes.{name}"), []
    for words in command_lines:
        for flag in flags.FLAGS:
            flags.FLAGS[flag].unparse()
        sys.argv = [f"{name}.py", *words]
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            try:
                command_line.parse(sys.argv)
                entry_point.run_main(recipe.main)
            except Reached:
                errors = io.StringIO()
            except SystemExit as e:
                assert e.code == 2
        refused.append(errors.getvalue())
    print(json.dumps(refused))


if __name__ == "__main__":
    _serve(sys.argv[1], json.loads(sys.argv[2]))
