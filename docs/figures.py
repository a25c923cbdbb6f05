"""Bar charts of the tables that a page marks, drawn when the site is built.

A comment before a table, `<!-- figure 2 3: alternative text -->`, asks for a chart of its second and third
column, with the first column as labels. The comment is invisible on GitHub, and the table stays in the page:
the picture has no figure that the table lacks.
"""

import pathlib
import re

MARK = re.compile(
    r"<!-- figure (?P<columns>[\d ]+): (?P<alternative>.*?) -->\n+(?P<table>(?:\|.*\n)+)", re.S
)
NUMBER = re.compile(r"(-?\d[\d,]*(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?))?")
FOLDER = "_pictures"
COLOURS = ("#2a6f97", "#e07a1f", "#5b8c3a", "#8a4f9e")


def draw_marked_tables(app, docname, source):
    """Put a picture before each marked table of a page (`source-read` of Sphinx)."""
    marks = iter(range(1, 100))

    def with_picture(match):
        name = f"{docname.replace('/', '_')}_{next(marks)}.svg"
        labels, series = read_table(match["table"], [int(x) - 1 for x in match["columns"].split()])
        folder = pathlib.Path(app.srcdir) / FOLDER
        folder.mkdir(exist_ok=True)
        draw_bars(labels, series, folder / name)
        alternative = " ".join(match["alternative"].split())
        return f"```{{image}} /{FOLDER}/{name}\n:alt: {alternative}\n:class: chart\n```\n\n{match['table']}"

    source[0] = MARK.sub(with_picture, source[0])


def read_table(table, columns):
    """Return a table's first column, and {heading: [(number, deviation) or None]} of `columns`.

    A cell's first number counts; emphasis and units are left out.
    """
    rows = [
        [cell.strip(" *`") for cell in line.strip("|\n").split("|")] for line in table.splitlines()
    ]
    heading, _, *rows = rows
    numbers = {
        f"{heading[column]}" or f"column {column + 1}": [_number(row[column]) for row in rows]
        for column in columns
    }
    return [re.sub(r"[*`]", "", row[0]) for row in rows], numbers


def _number(cell):
    match = NUMBER.search(cell)
    return match and (float(match[1].replace(",", "")), float(match[2] or 0))


def draw_bars(labels, series, path):
    """Draw horizontal bars, one group for each label, to an SVG file."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "tfnlp", "font.size": 9})
    from matplotlib import pyplot

    height = 0.8 / len(series)
    figure, axes = pyplot.subplots(figsize=(7.5, 0.7 + 0.17 * len(labels) * (1 + len(series))))
    for position, (name, values) in enumerate(series.items()):
        drawn = [(row + position * height, *value) for row, value in enumerate(values) if value]
        places, numbers, deviations = zip(*drawn, strict=True)
        bars = axes.barh(places, numbers, height, color=COLOURS[position], label=name)
        axes.errorbar(numbers, places, xerr=deviations, fmt="none", ecolor="black", elinewidth=0.8)
        axes.bar_label(bars, labels=[f"{number:,g}" for number in numbers], padding=6, fontsize=8)
    axes.set_yticks([row + 0.4 - height / 2 for row in range(len(labels))], labels)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    if len(series) > 1:
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    else:
        axes.set_xlabel(next(iter(series)))
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
