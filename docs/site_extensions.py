"""Additions to Sphinx: equations, pictures of tables, links to the API, search, docstrings."""

import inspect
import json
import pathlib
import re

import figures
from docutils import nodes
from ziamath.tex import tex2mml

# 'Args: those of `X`, and' begins a section with a sentence, which napoleon does not know.
OPENING = re.compile(r"^(Args|Call arguments|Returns|Raises): (.+)$")
CODE = re.compile(r"(`+[^`]+`+)")
# 'first, second,' before a line that goes on with names is one line to napoleon.
NAMES = re.compile(r"^(    (?:\w+, )*\w+,)\n +(?=[\w, ]+: )", re.M)
# What Sphinx's search takes a page's excerpt from.
MAIN = re.compile(r'<article role="main".*?</article>', re.DOTALL)
MARKUP = re.compile(r"[*|\\]|(?<=\w)_(?!\w)")


def setup(app):
    """Register what this module has with Sphinx."""
    app.add_html_math_renderer("mathml", (_inline_equation, None), (_equation, None))
    app.connect("source-read", figures.draw_marked_tables)
    app.connect("html-page-context", _set_language)
    app.connect("html-page-context", _add_search_scripts)
    app.connect("build-finished", _write_page_texts)
    app.connect("doctree-resolved", _link_classes)
    app.connect("autodoc-process-signature", _arguments_of_init)
    app.connect("autodoc-process-docstring", _as_restructured_text, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _set_language(app, pagename, templatename, context, doctree):
    """Tell browsers and screen readers which pages are Korean."""
    if pagename.startswith("ko/"):
        context["language"] = "ko"


def _add_search_scripts(app, pagename, templatename, context, doctree):
    if pagename == "search":
        app.add_js_file("page_texts.js")
        app.add_js_file("search_from_files.js")


def _write_page_texts(app, exception):
    """Write a script with the texts of all pages, which a search page among files cannot fetch."""
    if exception or app.builder.name != "html":
        return
    texts = {}
    for name in sorted(app.env.found_docs):
        address = app.builder.get_target_uri(name)
        page = pathlib.Path(app.outdir, address).read_text("utf-8")
        texts[f"./{address}"] = MAIN.search(page)[0]
    script = f"const PAGE_TEXTS = {json.dumps(texts, ensure_ascii=False)};\n"
    pathlib.Path(app.outdir, "_static", "page_texts.js").write_text(script, "utf-8")


def _link_classes(app, doctree, docname):
    """Link the names of classes in Markdown pages to the API, whose pages GitHub does not have."""
    if docname.startswith("api/"):
        return
    entries = app.env.domains.python_domain.objects.items()
    classes = {
        name.rpartition(".")[2]: entry
        for name, entry in entries
        if entry.objtype == "class" and not entry.aliased
    }
    for code in list(doctree.findall(nodes.literal)):
        entry = classes.get(code.astext())
        if entry and not isinstance(code.parent, nodes.reference):
            address = app.builder.get_relative_uri(docname, entry.docname)
            link = nodes.reference(refuri=f"{address}#{entry.node_id}", internal=True)
            code.replace_self(link)
            link += code


def _inline_equation(translator, node):
    translator.body.append(tex2mml(node.astext(), inline=True))
    raise nodes.SkipNode


def _equation(translator, node):
    translator.body.append(f'<div class="equation">{tex2mml(node.astext())}</div>')
    raise nodes.SkipNode


def _arguments_of_init(app, what, name, obj, options, signature, return_annotation):
    """Return the arguments of a Keras layer, which its `__new__` hides."""
    if what == "class" and signature == "(*args, **kwargs)":
        _, *arguments = inspect.signature(obj.__init__).parameters.values()
        return str(inspect.Signature(arguments)), return_annotation
    return None


def _as_restructured_text(app, what, name, obj, options, lines):
    """Write a docstring, plain text with code in single backticks, as reStructuredText."""
    written = []
    for place, line in enumerate(lines):
        match = OPENING.match(line)
        if match and place + 1 < len(lines) and lines[place + 1].startswith("    "):
            written += [line, "", f"{match[1]}:"]
        else:
            written.append(line)
    parts = CODE.split(NAMES.sub(r"\1 ", "\n".join(written)))
    for place, part in enumerate(parts):
        if place % 2:
            literal = f"``{part.strip('`')}``"
            parts[place] = literal + "\\ " * parts[place + 1][:1].isalnum()
        else:
            parts[place] = MARKUP.sub(r"\\\g<0>", part)
    lines[:] = "".join(parts).split("\n")
    if what == "module":
        lines += [line for constant in _constants(obj) for line in constant]


def _constants(module):
    """Yield a description of each public name that autodoc leaves out: no class, no function."""
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if not callable(value) and not inspect.ismodule(value):
            entries = [value] if isinstance(value, str) else sorted(map(str, value))
            content = ", ".join(f"``{entry}``" for entry in entries)
            yield "", f".. py:data:: {name}", "", f"   {content}"
