"""Checks command lines of a recipe without running it.

    python -m recipes.flags.flag_check RECIPE

reads a JSON list of mappings of flags, and prints the names of the recipe's flags, and for each
mapping an error or null. See `recipes.sweeps.sweep_file`.
"""

import contextlib
import importlib
import io
import json
import sys

from absl import flags

from recipes.shell.command_line import aliases, parse, recipe_flags, unknown_flag

FLAGS = flags.FLAGS


def find_error(values):
    """Return a recipe's error for flags, {name: string}; None if it accepts them."""
    for name in values:
        if name not in aliases | recipe_flags().keys():
            return unknown_flag(name)
    # Reset the flags, as if no command line had been parsed before.
    FLAGS.unparse_flags()
    for flag in recipe_flags().values():
        flag.unparse()
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output):
            parse([sys.argv[0], *(f"--{name}={value}" for name, value in values.items())])
    except SystemExit:
        return output.getvalue().strip().removeprefix("Error: ")
    return None


if __name__ == "__main__":
    importlib.import_module(f"recipes.{sys.argv[1]}")
    errors = [find_error(values) for values in json.load(sys.stdin)]
    print(json.dumps({"flags": sorted(recipe_flags()), "errors": errors}))
