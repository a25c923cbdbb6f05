"""Names that packages load when asked, and their use in recipes and benchmarks."""

import ast
import functools
import importlib
import pathlib
import subprocess
import sys

import pytest

import distill
import tfnlp

ROOT = pathlib.Path(__file__).parents[1]
FILES = sorted(p for folder in ("recipes", "benchmarks") for p in (ROOT / folder).glob("*.py"))
PACKAGES = sorted(
    ".".join(path.relative_to(ROOT).parent.parts)
    for name in ("tfnlp", "distill")
    for path in (ROOT / name).rglob("__init__.pyi")
)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_loads(name):
    package = importlib.import_module(name)
    stub = ast.parse(pathlib.Path(package.__file__).with_suffix(".pyi").read_text("utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    names = [alias.asname for node in imports for alias in node.names]
    assert names and set(names) <= set(package.__all__)
    for attribute in package.__all__:
        getattr(package, attribute)


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_name_in_use_exists(path):
    """A misspelt name fails only where the line runs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    packages = {"tfnlp": tfnlp, "distill": distill}
    missing = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in packages:
            module = importlib.import_module(node.module)
            for alias in node.names:
                try:
                    value = getattr(module, alias.name)
                except AttributeError:
                    value = importlib.import_module(f"{node.module}.{alias.name}")
                if isinstance(value, type(ast)):
                    packages[alias.asname or alias.name] = value
    stored = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    stored |= {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and type(n.ctx) is ast.Store
    }
    packages = {name: value for name, value in packages.items() if name not in stored}
    for node in ast.walk(tree):
        names = attribute_names(node)
        if names and names[0] in packages:
            try:
                functools.reduce(attribute_of, names[1:], packages[names[0]])
            except AttributeError as error:
                missing.append(f"{error}, line {node.lineno}")
    assert not missing


def attribute_of(value, name):
    """Return an attribute of a module or class; the value itself if it is neither."""
    return getattr(value, name) if isinstance(value, type | type(ast)) else value


def attribute_names(node):
    """Return ["a", "b", "c"] of the expression a.b.c."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if names and isinstance(node, ast.Name) else []


def test_recipes_load_no_framework():
    """Each shows --help, and refuses flags, without the seconds that TensorFlow takes."""
    names = [p.stem for p in FILES if p.parent.name == "recipes" and p.stem != "__init__"]
    code = (
        "import importlib, os, sys, absl.flags\n"
        f"for name in {names}:\n"
        "    if child := os.fork():\n"
        "        os.waitpid(child, 0)\n"
        "        continue\n"
        "    importlib.import_module(f'recipes.{name}')\n"
        "    loaded = sorted({'keras', 'sklearn', 'tensorflow', 'torch'} & set(sys.modules))\n"
        "    print(name, loaded, flush=True)\n"
        "    os._exit(0)\n"
    )
    lines = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout.splitlines()
    classical = {"baseline_classifier": ["sklearn"]}
    assert lines == [f"{name} {classical.get(name, [])}" for name in names]
