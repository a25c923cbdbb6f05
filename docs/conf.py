"""Sphinx settings of the site that `make docs` builds (docs/decisions/documentation.md)."""

import pathlib
import sys

import ziamath

sys.path.insert(0, str(pathlib.Path(__file__).parent))

project = "tfnlp"
author = "the authors of tfnlp"
copyright = author
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "site_extensions",
]
exclude_patterns = ["_templates"]
# Decisions have small headings; Pygments does not know `$` before a quote in Kotlin.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = "tfnlp"
FONT = pathlib.Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf"
html_static_path = ["_static", str(FONT)]
html_css_files = ["tfnlp.css"]
html_math_renderer = "mathml"
html_copy_source = False

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

napoleon_custom_sections = [("Call arguments", "params_style")]
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_inherit_docstrings = False
autodoc_typehints = "none"
