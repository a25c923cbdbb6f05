"""The site: class names lead to the API, and a search among files shows where in a page."""

import json
import pathlib

import pytest

from tests.browser import browser

application = pytest.importorskip("sphinx.application", reason="needs the extra docs")
pytest.importorskip("furo", reason="needs the extra docs")
pytest.importorskip("ziamath", reason="needs the extra docs")
DOCS = pathlib.Path(__file__).parents[2] / "docs"
CONF = f"""\
import sys
sys.path.insert(0, {str(DOCS)!r})
extensions = ["myst_parser", "sphinx.ext.autodoc", "site_extensions"]
html_theme = "furo"
html_static_path = [{str(DOCS / "_static")!r}]
html_math_renderer = "mathml"
"""
PAGES = {
    "index.md": "# Site\n\n```{toctree}\napi/words\nchapter/page\n```\n",
    "api/words.rst": "API\n===\n\n.. py:class:: words.Wombat\n.. py:function:: words.run\n",
    "chapter/page.md": "# Page\n\nBefore it all, `Wombat` digs burrows. `run`, `Wombat(2)`.\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    for name, text in {"conf.py": CONF, **PAGES}.items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    source, output = folder / "source", folder / "site"
    application.Sphinx(source, source, output, folder / "trees", "html", status=None).build()
    return output


def test_class_names_lead_to_the_api(site):
    page = (site / "chapter/page.html").read_text("utf-8")
    assert page.count('href="../api/words.html#words.Wombat"') == 1
    assert "words.html#words.run" not in page


def test_a_search_among_files_has_the_texts_of_all_pages(site):
    script = (site / "_static/page_texts.js").read_text("utf-8")
    texts = json.loads(script.removeprefix("const PAGE_TEXTS = ").removesuffix(";\n"))
    assert set(texts) == {"./index.html", "./api/words.html", "./chapter/page.html"}
    assert "digs burrows" in texts["./chapter/page.html"]
    assert "page_texts.js" in (site / "search.html").read_text("utf-8")
    assert "page_texts.js" not in (site / "index.html").read_text("utf-8")


def test_a_search_among_files_shows_where_in_a_page(site, tmp_path):
    with browser(tmp_path) as page:
        page.open(site / "search.html", place="?q=burrows")
        page.wait("document.querySelector('.context')")
        assert "digs burrows" in page.js("document.querySelector('.context').innerText")
