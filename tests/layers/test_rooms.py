"""Imports between `tfnlp.functional`, `tfnlp.quantization` and the rooms of `tfnlp.layers`."""

import ast
import pathlib

import pytest

import tfnlp.layers

LAYERS = pathlib.Path(tfnlp.layers.__file__).parent
BELOW = {"tfnlp.functional", "tfnlp.quantization"}
CORE = BELOW | {"tfnlp.layers.core"}
ALLOWED = {
    "functional": {"tfnlp.functional", "tensorflow"},  # `check_length` has TensorFlow's assertion
    "quantization": BELOW,
    "layers/core": CORE,
    "layers/attention": CORE | {"tfnlp.layers.attention"},
    "layers/embeddings": CORE | {"tfnlp.layers.embeddings"},
    "layers/outputs": CORE | {"tfnlp.layers.outputs"},
    "layers/blocks": CORE | {"tfnlp.layers.attention", "tfnlp.layers.blocks"},
}


def imported_packages(path):
    """Yield the package of each import of a file from the project or TensorFlow."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        for name in names:
            if name.startswith(("tfnlp", "distill", "tensorflow")):
                yield ".".join(name.split(".")[: 3 if name.startswith("tfnlp.layers") else 2])


@pytest.mark.parametrize("room", ALLOWED)
def test_imports_go_one_way(room):
    files = sorted((LAYERS.parent / room).glob("*.py"))
    assert len(files) > 1
    for path in files:
        assert set(imported_packages(path)) <= ALLOWED[room], path.name


def test_every_layer_is_in_a_room():
    rooms = {room.removeprefix("layers/") for room in ALLOWED if room.startswith("layers/")}
    files = {path.name for path in LAYERS.iterdir() if path.name != "__pycache__"}
    assert files == {"__init__.py", *rooms}
