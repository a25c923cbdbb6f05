"""Bar charts of the tables that a page marks, drawn when the site is built.

A comment before a table, `<!-- figure 2 3: text -->`, asks for a chart of its second and third
column, with the first column as labels. Its first sentence is the title, all of it the alternative
text. The comment is invisible on GitHub, and the table stays in the page: the picture has no
figure that the table lacks.
"""

import pathlib
import re

MARK = re.compile(
    r"<!-- figure (?P<columns>[\d ]+): (?P<text>.*?) -->\n+(?P<table>(?:\|[^\n]*\n)+)", re.S
)
NUMBER = re.compile(r"(-?\d[\d,]*(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?))?")
FOLDER = "_pictures"
COLOURS = ("#2a6f97", "#e07a1f", "#5b8c3a", "#8a4f9e")


def draw_marked_tables(app, docname, source):
    """Put a picture before each marked table of a page (`source-read` of Sphinx)."""
    folder = pathlib.Path(app.srcdir) / FOLDER
    numbers = iter(range(1, 100))

    def with_picture(match):
        name = f"{docname.replace('/', '_')}_{next(numbers)}.svg"
        text = " ".join(match["text"].split())
        columns = [int(number) - 1 for number in match["columns"].split()]
        folder.mkdir(exist_ok=True)
        draw_bars(text.split(". ")[0], *read_table(match["table"], columns), folder / name)
        picture = f"```{{image}} /{FOLDER}/{name}\n:alt: {text}\n:class: chart\n```"
        return f"{picture}\n\n{match['table']}"

    source[0] = MARK.sub(with_picture, source[0])


def read_table(table, columns):
    """Return a table's first column, and (heading, [(number, deviation) or None]) of `columns`.

    A cell's first number counts; emphasis and units are left out.
    """
    rows = [re.sub(r"[*`]", "", line)[1:-1].split("|") for line in table.splitlines()]
    heading, _, *rows = [[cell.strip() for cell in row] for row in rows]
    series = [(heading[column], [_number(row[column]) for row in rows]) for column in columns]
    return [row[0] for row in rows], series


def _number(cell):
    match = NUMBER.search(cell)
    return match and (float(match[1].replace(",", "")), float(match[2] or 0))


def draw_bars(title, labels, series, path):
    """Draw horizontal bars, a group for each label, to an SVG file.

    Numbers that lie close together are points, on an axis that does not begin at 0.
    """
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "tfnlp", "font.size": 9})
    from matplotlib import pyplot

    numbers = [value[0] for _, values in series for value in values if value]
    close = min(numbers) > 0.6 * max(numbers)
    height = 0.8 / len(series)
    figure, axes = pyplot.subplots(figsize=(7.5, 0.7 + 0.17 * len(labels) * (1 + len(series))))
    for position, (name, values) in enumerate(series):
        drawn = [(row + position * height, *value) for row, value in enumerate(values) if value]
        places, numbers, deviations = zip(*drawn, strict=True)
        if not close:
            axes.barh(places, numbers, height, color=COLOURS[position], label=name)
        style = (
            {"color": COLOURS[position], "fmt": "o", "label": name}
            if close
            else {"color": "black", "fmt": "none"}
        )
        if close or any(deviations):
            axes.errorbar(numbers, places, xerr=deviations, **style)
        for place, number, deviation in zip(places, numbers, deviations, strict=True):
            offset = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
            axes.annotate(f"{number:,g}", (number + deviation, place), fontsize=8, **offset)
    axes.set_yticks([row + 0.4 - height / 2 for row in range(len(labels))], labels)
    axes.set_title(title, loc="left", fontsize=10)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    if len(series) > 1:
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
