"""The rooms of `tfnlp.layers`, and which of them may know which."""

import ast
import pathlib

import pytest

import tfnlp.layers

LAYERS = pathlib.Path(tfnlp.layers.__file__).parent
KNOWN = {
    "core": {"core"},
    "attention": {"core", "attention"},
    "embeddings": {"core", "embeddings"},
    "outputs": {"core", "outputs"},
    "blocks": {"core", "attention", "blocks"},
}


def rooms_of(path):
    """The rooms that a file imports from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        for name in names:
            if name.startswith(("tfnlp", "distill", "tensorflow")):
                yield name.removeprefix("tfnlp.layers.").split(".")[0]


@pytest.mark.parametrize("room", KNOWN)
def test_arrows_point_one_way(room):
    files = sorted((LAYERS / room).glob("*.py"))
    assert len(files) > 4
    # `check_length` has TensorFlow's own assertion, where Keras has none.
    own = {"tensorflow"} if room == "core" else set()
    for path in files:
        assert set(rooms_of(path)) <= KNOWN[room] | own, path.name


def test_no_layer_stands_outside_a_room():
    assert {path.name for path in LAYERS.iterdir() if path.name != "__pycache__"} == {
        "__init__.py",
        *KNOWN,
    }
