"""Imports inside functions of recipes and benchmarks, which fail only where these run."""

import ast
import importlib
import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]
FILES = sorted(p for folder in ("recipes", "benchmarks") for p in (ROOT / folder).glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_name_taken_from_the_packages_is_there(path):
    missing = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in ("tfnlp", "distill"):
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name) and not is_module(module, alias.name):
                    missing.append(f"{node.module}.{alias.name}, line {node.lineno}")
    assert not missing


def is_module(package, name):
    found = hasattr(package, "__path__")
    return found and importlib.util.find_spec(f"{package.__name__}.{name}") is not None
