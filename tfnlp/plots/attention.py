"""Page of a model's attention: one HTML file, for a browser, a notebook or a screen reader."""

import dataclasses
import html
import itertools
import string

import numpy as np

from tfnlp.plots.attention_data import pack_text
from tfnlp.plots.attention_summary import page_sentence
from tfnlp.plots.html_page import HANGUL, html_page, html_table, page_file
from tfnlp.utils.files import write_text

# Steps of darkness in the picture without scripts.
STEPS = 8
SIDE, SMALLEST = 150, 3  # pixels of a map there, and the fewest of an entry
# Characters of a text above the page, where its sentence is.
QUOTED = 200


@dataclasses.dataclass(frozen=True)
class AttentionPage:
    """A page that needs no network; a notebook shows it where it is the value of a cell.

    Args:
        html: the page.
        svg: a picture of the first text's layers, the mean of their heads.
        summary: a sentence on each text.
    """

    html: str
    svg: str
    summary: list

    def save(self, path):
        """Write the page to a file, .html."""
        write_text(path, self.html)

    def _repr_html_(self):
        return (
            '<iframe title="Attention" width="100%" height="900" '
            'sandbox="allow-scripts allow-downloads" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


def attention_page(attentions, teachers=None, layer_map=None, title=None):
    """Return the `AttentionPage` of one or several texts.

    Args:
        attentions: a `tfnlp.inspection.TextAttention`, or a list of them.
        teachers: those of the teacher on the same texts, to stand beside; None for none.
        layer_map: for each of the student's layers the teacher's, counted from 0; with `teachers`.
        title: of the page; the model's name if None.
    """
    attentions = attentions if isinstance(attentions, list | tuple) else [attentions]
    teachers = teachers or [None] * len(attentions)
    teachers = teachers if isinstance(teachers, list | tuple) else [teachers]
    pairs = list(zip(attentions, teachers, strict=True))
    packed = [pack_text(attention, teacher, layer_map) for attention, teacher in pairs]
    summary = [
        f"{_answer(attention)}{page_sentence(patterns)}"
        for attention, (_, patterns) in zip(attentions, packed, strict=True)
    ]
    title = title or f"Attention of {attentions[0].model}"
    data = {"texts": [text for text, _ in packed], "summary": summary, "title": title}
    svg = static_svg(attentions[0])
    parts = {
        "title": html.escape(title),
        "summaries": "\n".join(map(_summary, attentions, summary)),
        "tables": "\n".join(_sentences(text) for text, _ in packed),
        "picture": svg,
    }
    style, script = page_file("attention.css"), page_file("attention.js")

    def page(size):
        body = string.Template(page_file("attention.html")).substitute(parts, size=size)
        return html_page(title, body, style, script, data)

    size = len(page("").encode("utf-8"))
    return AttentionPage(page(f"{size / 1e6:.1f} MB"), svg, summary)


def static_svg(attention):
    """Return an SVG of each layer's attention, the mean over its heads; "" without layers."""
    if not attention.layers:
        return ""
    maps = [layer.weights.mean(0) for layer in attention.layers]
    most_rows, most_columns = (max(x.shape[axis] for x in maps) for axis in (0, 1))
    cell = max(SMALLEST, SIDE // max(most_rows, most_columns))
    width, height = max(cell * most_columns + 14, SIDE), cell * most_rows + 34
    columns = max(1, min(len(maps), 900 // width))
    pictures = []
    for number, (layer, weights) in enumerate(zip(attention.layers, maps, strict=True)):
        y, x = (side * n for side, n in zip((height, width), divmod(number, columns), strict=True))
        name = f"{layer.name} {layer.stream}".strip()
        rows, cells = weights.shape
        pictures.append(
            f'<g transform="translate({x},{y})"><text y="14">{html.escape(name)}</text>'
            f'<g transform="translate(0,20) scale({cell})">{_paths(weights)}'
            f'<rect class="cell" fill="none" stroke="gray" stroke-width=".2" width="{cells}" '
            f'height="{rows}"/></g></g>'
        )
    size = f"{width * columns} {height * -(-len(maps) // columns)}"
    return (
        f'<svg class="static" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img" '
        f'width="{width * columns}" font-family="sans-serif" font-size="12">'
        f"<title>Mean attention of the heads of each layer: rows look at columns, darker is "
        f"more.</title>{''.join(pictures)}</svg>"
    )


def _paths(weights):
    """Return a path for each step of darkness, of runs of entries of that step."""
    steps = np.rint(np.sqrt(weights) * STEPS).astype(int)
    runs = {}
    for y, row in enumerate(steps):
        edges = np.flatnonzero(np.diff(row, prepend=-1, append=-1))
        for start, end in itertools.pairwise(edges):
            runs.setdefault(int(row[start]), []).append(f"M{start} {y}h{end - start}v1H{start}z")
    return "".join(
        f'<path fill-opacity="{step / STEPS:.3f}" d="{"".join(parts)}"/>'
        for step, parts in sorted(runs.items())
        if step
    )


def _answer(attention):
    return f"The model's answer: {attention.answer}. " if attention.answer else ""


def _summary(attention, sentence):
    texts = " / ".join(_quoted(text) for text in attention.texts)
    return f"<p>{texts}: {html.escape(sentence)}</p>"


def _quoted(text):
    lang = ' lang="ko"' if HANGUL.search(text) else ""
    text = text if len(text) <= QUOTED else f"{text[:QUOTED]}…"
    return f"<q{lang}>{html.escape(text)}</q>"


def _sentences(text):
    """Return a table of a text's heads, each summed up by its sentence."""
    rows = [["layer", "head", "where it looks"]]
    for entry in text["entries"]:
        name = f"{entry['name']} {entry['stream']}".strip()
        rows += [[name, str(i + 1), s] for i, s in enumerate(entry["sentences"])]
    return html_table(rows, " / ".join(text["texts"])) if len(rows) > 1 else ""
