"""Runs the snippets of the pages: `python -m pytest docs`.

Python and bash blocks run in order, those of a page in one namespace and folder. A `text` block
after one is its output: numbers with a point may differ by a fifth or 0.05, and `...` is anything.
A block after the comment `<!-- skip: next "reason" -->` does not run.
"""

import contextlib
import doctest
import importlib.util
import io
import math
import os
import pathlib
import re
import subprocess
import sys

import pytest
from sybil import Region, Sybil
from sybil.parsers.markdown import SkipParser

from docs.nsmc import NSMC, write_ratings
from recipes.shell import demo_data

DOCS = pathlib.Path(__file__).parent
BLOCK = re.compile(
    r"^```(?P<language>python|bash)\n(?P<source>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?",
    re.M | re.S,
)
NUMBER = re.compile(r"\d+\.\d+")


def parse_blocks(document):
    """Yield the region of each block that runs."""
    for match in BLOCK.finditer(document.text):
        yield Region(match.start(), match.end(), match, run_block)


def run_block(example):
    """Run a block, and return the difference between its output and the page's."""
    block = example.parsed
    if block["language"] == "python":
        printed = io.StringIO()
        lines = "\n" * example.line + block["source"]  # an error names the line of the page
        with contextlib.redirect_stdout(printed):
            exec(compile(lines, example.path, "exec"), example.namespace)
        printed = printed.getvalue()
    else:
        done = subprocess.run(
            ["bash", "-ec", block["source"]], check=False, capture_output=True, text=True
        )
        if done.returncode:
            return done.stderr or f"exit status {done.returncode}"
        printed = done.stdout
    if block["output"] is None:
        return None
    printed = with_numbers_of(block["output"], printed)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if doctest.OutputChecker().check_output(block["output"], printed, flags):
        return None
    return f"The page has\n{block['output']}and the block printed\n{printed}"


def with_numbers_of(page, printed):
    """Return what was printed, with the page's numbers where they are within a fifth or 0.05.

    Processors round otherwise, and a training ends with other digits.
    """
    expected = NUMBER.findall(page)
    if len(expected) != len(NUMBER.findall(printed)):
        return printed
    numbers = iter(expected)

    def close(match):
        number = next(numbers)
        alike = math.isclose(float(number), float(match[0]), rel_tol=0.2, abs_tol=0.05)
        return number if alike else match[0]

    return NUMBER.sub(close, printed)


def installed(name):
    """Return whether a module can be imported, for the conditions of skipped blocks."""
    return importlib.util.find_spec(name) is not None


def free_memory(namespace):
    """Forget what the blocks of a page made, and what TensorFlow keeps of it."""
    namespace.clear()
    if "keras" in sys.modules:
        sys.modules["keras"].utils.clear_session()


pytest_collect_file = Sybil(
    parsers=[parse_blocks, SkipParser()],
    patterns=["*.md"],
    excludes=["ko/*.md"],  # their snippets are those of tutorials/
    setup=lambda namespace: namespace.update(installed=installed, NSMC=NSMC),
    teardown=free_memory,
    fixtures=["working_folder"],
).pytest()


@pytest.fixture
def working_folder(request, demo_folder, tmp_path_factory, monkeypatch):
    """Run the blocks of pages of one folder of docs/ in a folder that has the demo's files."""
    name = request.path.parent.name
    path = tmp_path_factory.getbasetemp() / name
    if not path.exists():
        path.mkdir()
        (path / "demo").symlink_to(demo_folder)
        if NSMC.exists():
            write_ratings(path)
        if path.name == DOCS.name:
            from docs.stand_ins import write_stand_ins

            write_stand_ins(path)
    monkeypatch.chdir(path)
    monkeypatch.setenv("PATH", f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(DOCS.parent))
    return path


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory):
    """The model and the sentences with which `make demo` begins."""
    folder = tmp_path_factory.mktemp("demo")
    demo_data.write_demo(pathlib.Path(sys.prefix) / "demo", folder)
    return folder
