"""Notebooks of the guides: `make notebooks` writes and runs them."""

import os
import pathlib
import re
import sys

import jupytext
from nbclient import NotebookClient

from docs.nsmc import NSMC, write_ratings
from recipes.shell import demo_data

CLONE = pathlib.Path(__file__).parents[1]
GUIDES = CLONE / "docs/guides"
# A page has the output of a block below it, and a notebook its own.
OUTPUT = re.compile(r"(^```(?:python|bash)\n.*?^```\n)\n```text\n.*?^```\n", re.M | re.S)
SKIP = re.compile(r"^<!-- skip: .*? -->\n\n", re.M)
# Without it the language of the first block would be that of the notebook.
KERNEL = """\
---
jupyter:
  kernelspec: {name: python3, display_name: Python 3, language: python}
---

"""


def read_notebook(page):
    """Return a page as a notebook without outputs; bash blocks are `%%bash` cells."""
    text = SKIP.sub("", OUTPUT.sub(r"\1", page.read_text("utf-8")))
    text = re.sub(r"\]\((\w+)\.md", r"](\1.ipynb", text)
    return jupytext.reads(KERNEL + text.replace("](../", "](../../docs/"), "md")


def run_notebook(notebook, folder, environment):
    """Run a notebook in a folder, and keep its outputs; the first error is raised."""
    client = NotebookClient(notebook, kernel_name="python3")
    client.execute(cwd=str(folder), env=environment)


def kernel_environment():
    """Return variables by which cells find this Python and the clone."""
    return os.environ | {
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(CLONE),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


def main(folder, packages, *names):
    """Write and run the guides of these names, or all, with what they make beside them."""
    environment = kernel_environment()
    folder = pathlib.Path(folder)
    demo_data.write_demo(packages, folder / "demo")
    if NSMC.exists():
        write_ratings(folder)
    pages = [GUIDES / f"{name}.md" for name in names]
    for page in pages or sorted(GUIDES.glob("*.md")):
        notebook = read_notebook(page)
        path = folder / f"{page.stem}.ipynb"
        if "ratings_train.txt" in page.read_text("utf-8") and not NSMC.exists():
            print(f"{path}: not run, as NSMC is not in $TFNLP_DATA.")
            jupytext.write(notebook, path)
        else:
            print(f"{path}: runs", flush=True)
            try:
                run_notebook(notebook, folder, environment)
            finally:
                jupytext.write(notebook, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
