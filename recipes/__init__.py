"""Command-line programs; --help explains each of them.

Decisions: docs/decisions/recipes.md.
"""

import importlib.util
import pathlib
import sys


def obstacle():
    """Return what keeps every recipe from running, a sentence; None where nothing does."""
    for name in ("absl", "tensorflow"):
        if importlib.util.find_spec(name) is None:
            return (
                f"{name} is not installed, which the commands need: `pip install .` in the clone "
                "of tfnlp. Without it files run from Python alone (distill.runtime)."
            )
    for name in ("tfnlp", "distill"):
        spec = importlib.util.find_spec(name)
        places = spec.submodule_search_locations if spec else None
        beside = pathlib.Path(__file__).parents[1] / name
        if spec and not any(pathlib.Path(place).samefile(beside) for place in places or ()):
            hiding = spec.origin or next(iter(places))
            return f"{hiding} hides a package of tfnlp; rename it, or run this in another folder."
    return None


if sentence := obstacle():
    print(f"Error: {sentence}", file=sys.stderr)
    sys.exit(2)
