"""Notebooks of the guides: all are made, and the beginning of one is run."""

import ast
import pathlib
import sys

import pytest

notebooks = pytest.importorskip(
    "docs.notebooks", reason="needs the extra docs", exc_type=ImportError
)
PAGES = sorted(notebooks.GUIDES.glob("*.md"))
PACKAGES = pathlib.Path(sys.prefix) / "demo"


def test_a_page_becomes_cells_without_its_outputs(tmp_path):
    page = tmp_path / "page.md"
    text = '# Title\n\n<!-- skip: next "why" -->\n\n```bash\nls | cat\n```\n\n'
    text += "[Next](next.md#part), [layers](../layers.md).\n\n```python\nprint(1)\n```\n\n"
    page.write_text(f"{text}```text\n1\n```\n\nWords.\n")
    cells = notebooks.read_notebook(page).cells
    assert [(cell.cell_type, cell.source) for cell in cells] == [
        ("markdown", "# Title"),
        ("code", "%%bash\nls | cat"),
        ("markdown", "[Next](next.ipynb#part), [layers](../../docs/layers.md)."),
        ("code", "print(1)"),
        ("markdown", "Words."),
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_block_of_a_guide_is_a_cell(page):
    sources = [c.source for c in notebooks.read_notebook(page).cells if c.cell_type == "code"]
    text = page.read_text("utf-8")
    assert len(sources) == text.count("\n```python\n") + text.count("\n```bash\n") > 2
    assert sum(source.startswith("%%bash\n") for source in sources) == text.count("```bash\n")
    for source in sources:
        if not source.startswith("%%"):
            ast.parse(source)
