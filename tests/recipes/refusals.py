"""What a recipe says of flags that do not go together, many in a process without TensorFlow.

python tests/recipes/refusals.py RECIPE '[["--flag=value", ...], ...]'
"""

import contextlib
import importlib
import io
import json
import subprocess
import sys

from tests.recipes.shell import RECIPES


def refusals(recipe, given):
    """The standard error of each command line, which the recipe refuses before any work.

    Args:
        recipe: its name.
        given: a list of lists of flags.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.recipes.refusals", recipe, json.dumps(given)],
        check=False,
        capture_output=True,
        text=True,
        cwd=RECIPES.parent,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _check(recipe):
    """As `recipes.common.run`, up to what needs TensorFlow."""
    from recipes import command_line, common
    from tfnlp.utils.errors import InputError

    command_line.parse(sys.argv)
    try:
        common.check_files()
        for name in ("check", "check_flags"):
            getattr(recipe, name, lambda: None)()
        common.check_columns()
        common.check_labels()
        common.training_config()
    except InputError as e:
        command_line.fail(common.with_flags(common.with_column_flag(e), common.FLAGS))


def _serve(name, given):
    from absl import flags

    recipe, said = importlib.import_module(f"recipes.{name}"), []
    for words in given:
        for flag in flags.FLAGS:
            flags.FLAGS[flag].unparse()
        sys.argv = [f"{name}.py", *words]
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            try:
                _check(recipe)
            except SystemExit as e:
                assert e.code == 2
        said.append(errors.getvalue())
    assert "tensorflow" not in sys.modules
    print(json.dumps(said))


if __name__ == "__main__":
    _serve(sys.argv[1], json.loads(sys.argv[2]))
