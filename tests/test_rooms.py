"""Imports between the rooms of a package, and from `tfnlp.functional` and `tfnlp.quantization`."""

import ast
import pathlib

import pytest

import tfnlp.layers

LAYERS = pathlib.Path(tfnlp.layers.__file__).parent
BELOW = {"tfnlp.functional", "tfnlp.quantization"}
CORE = BELOW | {"tfnlp.layers.core"}
ALLOWED = {
    # `check_length` and `weighted_losses` need TensorFlow, and these a text's mark of no target.
    "functional": {"tfnlp.functional", "tensorflow", "tfnlp.text.batching"},
    "quantization": BELOW,
    "layers/core": CORE,
    "layers/attention": CORE | {"tfnlp.layers.attention"},
    "layers/embeddings": CORE | {"tfnlp.layers.embeddings"},
    "layers/outputs": CORE | {"tfnlp.layers.outputs"},
    "layers/blocks": CORE | {"tfnlp.layers.attention", "tfnlp.layers.blocks"},
}
# Rooms of other packages, from below; a module beside them stands above all.
ORDER = {
    "text": ("reading", "batching", "tokenizers", "decoding"),
    "objectives": ("reading", "batches"),
    "training": ("step", "run", "experiments"),
}


def imported_packages(path):
    """Yield the package of each import of a file from the project or TensorFlow."""
    roomy = tuple(f"tfnlp.{name}." for name in ("layers", *ORDER))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        for name in names:
            if name.startswith(("tfnlp", "distill", "tensorflow")):
                yield ".".join(name.split(".")[: 3 if name.startswith(roomy) else 2])


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


@pytest.mark.parametrize(("package", "rooms"), ORDER.items(), ids=ORDER)
def test_rooms_import_from_rooms_below(package, rooms):
    for height, room in enumerate(rooms):
        below = {f"tfnlp.{package}.{name}" for name in rooms[: height + 1]}
        for path in sorted((LAYERS.parent / package / room).glob("*.py")):
            names = {f"{name}." for name in imported_packages(path)}
            inside = {name[:-1] for name in names if name.startswith(f"tfnlp.{package}.")}
            assert inside <= below, path.name
