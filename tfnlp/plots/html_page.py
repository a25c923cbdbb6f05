"""HTML pages in one style, each a single file that asks the network for nothing."""

import base64
import hashlib
import html
import importlib.resources
import io
import json
import re

FILES = importlib.resources.files("tfnlp.plots") / "pages"
HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")


def page_file(name):
    """Return the text of a file of `tfnlp/plots/pages`."""
    return (FILES / name).read_text(encoding="utf-8")


def html_page(title, body, style="", script=None, data=None):
    """Return a page that runs and loads nothing but what is in it.

    Its policy allows the one script and the one style by their hashes; without a script, styles
    within the pictures of matplotlib too.

    Args:
        title: text.
        body: HTML.
        style: CSS beside that of every page.
        script: JavaScript, or None.
        data: what the script reads from the element "data", as JSON; or None.
    """
    style = page_file("page.css") + style
    policy = ["default-src 'none'", "base-uri 'none'", "form-action 'none'"]
    if script is None:
        policy.append("style-src 'unsafe-inline'")
        scripts = ""
    else:
        policy += [f"style-src {_digest(style)}", f"script-src {_digest(script)}"]
        scripts = f'<script type="application/json" id="data">{_json(data)}</script>\n'
        scripts += f"<script>{script}</script>\n"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{"; ".join(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<style>{style}</style>
</head>
<body>
{body}
{scripts}</body>
</html>
"""


def html_table(rows, caption="", marked=()):
    """Return a table of texts, the header first; each row is named by its first text.

    Args:
        rows: lists of strings.
        caption: text above the table.
        marked: the numbers of rows to mark, the first after the header being 0.
    """
    header, *rest = rows
    head = "".join(f'<th scope="col">{tagged(cell)}</th>' for cell in header)
    lines = ['<div class="wide"><table class="plain">']
    lines += [f"<caption>{html.escape(caption)}</caption>"] if caption else []
    lines += [f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for number, (name, *cells) in enumerate(rest):
        texts = "".join(f"<td>{tagged(cell)}</td>" for cell in cells)
        mark = ' class="best"' if number in marked else ""
        lines.append(f'<tr{mark}><th scope="row">{tagged(name)}</th>{texts}</tr>')
    return "\n".join([*lines, "</tbody></table></div>"])


def tagged(text):
    """Return a text as HTML, marked as Korean if it has Hangul."""
    escaped = html.escape(text)
    return f'<span lang="ko">{escaped}</span>' if HANGUL.search(text) else escaped


def svg_of(figure, name):
    """Return a matplotlib figure as an SVG with a name, in the reader's colours and fonts.

    Ids and dates are left out, so that the same figure gives the same page.
    """
    import matplotlib

    for axes in figure.axes:
        if axes.get_legend() is not None:
            axes.get_legend().set_frame_on(False)  # a white one
    svg = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tfnlp"}):
        unset = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(svg, format="svg", metadata=unset, transparent=True)
    text = svg.getvalue()
    text = text[text.index("<svg") :].replace("#000000", "currentColor")
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(name)}"', 1)


def _digest(text):
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _json(data):
    """Return JSON that ends no element, whatever its texts."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
