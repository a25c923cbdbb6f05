"""Comparison of files as a table, and as one self-contained HTML page."""

import html
import io

from absl import logging

from distill.reports.pareto_frontier import LENGTH, pareto
from tfnlp.tasks.confusion_matrix import matrix_rows

# Horizontal axes: a title, and a function of a candidate.
COSTS = {
    "size": ("size (MB)", lambda c: c.size_mb),
    "latency": (f"one thread, {LENGTH} tokens (ms)", lambda c: c.latency_ms),
}
_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1100px; margin: 2em auto }
table { border-collapse: collapse; margin: 1em 0 }
td, th { padding: .25em .7em; text-align: right }
td:first-child, th:first-child { text-align: left } tr { border-bottom: 1px solid #ddd }
tr.best { background: #eaf3ff } svg { max-width: 50% }
"""


def table_rows(candidates, metric):
    """Return the header and a row of texts for each candidate, the smallest first."""
    shown = sorted(candidates, key=lambda c: (c.size_mb, c.name))
    best = {name: _frontier(shown, cost) for name, (_, cost) in COSTS.items()}
    agreement = any(c.agreement for c in shown)
    header = ["model", metric, *(["agreement"] if agreement else [])]
    header += ["MB", "ms at 16", "ms at 32", "ms at 128", "first call ms", "create ms"]
    rows = [[*header, "ms, mixed / equal lengths", "peak MB", "frontier"]]
    for c in shown:
        figures, count = c.figures, len(c.paths)
        warm = [figures["latency_ms"]["1"].get(str(n)) for n in (16, 32, 128)]
        row = [c.name, _estimate(c.score, count)]
        row += [_estimate(c.agreement, count)] if agreement else []
        row += [f"{c.size_mb:.2f}", *("-" if ms is None else f"{ms:.2f}" for ms in warm)]
        row += [f"{figures[name]:.1f}" for name in ("first_call_ms", "create_ms")]
        row += [f"{figures['mixed_ms'] / figures['equal_ms']:.2f}"]
        row += [f"{figures['peak_memory_mb']:.0f}"]
        rows.append([*row, " ".join(name for name in COSTS if c.name in best[name])])
    if shown[0].baseline is not None:
        score = f"{shown[0].baseline:.4f}"
        rows.append(["(baseline)", score, *["-"] * (len(rows[0]) - 3), ""])
    return rows


def page(candidates, metric, title):
    """Return the HTML page: a plot for each cost, the table, and each file's answers."""
    rows = table_rows(candidates, metric)
    counts = "\n".join(_counts(c) for c in candidates if c.counts)
    answers = f"<h2>Answers</h2>\n{counts}\n" if counts else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style></head>
<body>
<h1>{html.escape(title)}</h1>
<p>Blue: no other file is smaller (or faster) and scores as much. Bars are standard errors over
seeds. Latency is of warm calls on one thread; peak memory is that of a Python process.
Mixed / equal lengths: the time of a text where the length changes with each call, over that of
texts of one length.</p>
{_plots(candidates, metric)}{_table(rows, marks=True)}
{answers}</body>
</html>
"""


def scatter(points, label, metric):
    """Return an SVG of (cost, score, error or None, name) points, with the frontier joined.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    import matplotlib
    from matplotlib.figure import Figure

    best = pareto([(cost, score) for cost, score, _, _ in points])
    figure = Figure(figsize=(5.8, 4), layout="constrained")
    axes = figure.add_subplot(xlabel=label, ylabel=metric)
    axes.grid(alpha=0.3)
    frontier = sorted(point[:2] for point, is_best in zip(points, best, strict=True) if is_best)
    axes.plot(*zip(*frontier, strict=True), "--", color="C0", linewidth=1)
    middle = max(cost for cost, *_ in points) / 2
    for (cost, score, error, name), is_best in zip(points, best, strict=True):
        color, group = ("C0", "frontier") if is_best else ("C7", "beaten")
        axes.errorbar(cost, score, error, color=color)
        axes.plot(cost, score, "o", color=color, gid=f"{group}: {name}")
        # Names near the right edge go to the left, or the plot would shrink for them.
        side, align = (7, "left") if cost <= middle else (-7, "right")
        axes.annotate(
            name, (cost, score), (side, 0), textcoords="offset points", ha=align, va="center"
        )
    axes.set_xlim(left=0)
    axes.margins(y=0.1)
    svg = io.StringIO()
    # Text stays text, for the fonts of the reader; fixed ids make the page reproducible.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": label}):
        unset = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(svg, format="svg", metadata=unset)
    return svg.getvalue()[svg.getvalue().index("<svg") :]


def _plots(candidates, metric):
    """Return the SVG of each cost; "" and a line in the log without matplotlib."""
    plots = []
    for label, cost in COSTS.values():
        timed = [c for c in candidates if cost(c) is not None]
        points = [(cost(c), c.score.mean, c.score.error, c.name) for c in timed]
        try:
            plots += [scatter(points, label, metric)] if points else []
        except ImportError:
            logging.info("No plots on the page: install tfnlp[plots] for them.")
            return ""
    return "".join(plots)


def _table(rows, marks=False):
    """Return an HTML table of texts, the header first; `marks` rows with a non-empty last text."""
    header, *rest = rows
    lines = ["<table>", f"<tr>{''.join(f'<th>{html.escape(c)}</th>' for c in header)}</tr>"]
    for row in rest:
        cells = "".join(f"<td>{html.escape(c)}</td>" for c in row)
        mark = ' class="best"' if marks and row[-1] else ""
        lines.append(f"<tr{mark}>{cells}</tr>")
    return "\n".join([*lines, "</table>"])


def _counts(candidate):
    """Return HTML of a candidate's confusion matrix, and of its only answer if it has one."""
    matrix, answer = (candidate.counts.get(key) for key in ("confusion", "only_answer"))
    lines = []
    if matrix is not None:
        name, table = html.escape(candidate.name), _table(matrix_rows(matrix))
        lines.append(f"<details><summary>{name}</summary>\n{table}\n</details>")
    if answer is not None:
        sentence = f"{candidate.name} answers {answer} to all texts, whose gold answers differ."
        lines.append(f"<p>{html.escape(sentence)}</p>")
    return "\n".join(lines)


def _frontier(candidates, cost):
    """Return the names of the candidates on the frontier, among those that have the cost."""
    timed = [c for c in candidates if cost(c) is not None]
    marks = pareto([(cost(c), c.score.mean) for c in timed])
    return {c.name for c, is_best in zip(timed, marks, strict=True) if is_best}


def _estimate(estimate, count):
    """Format an estimate, with the number of its values if it is not `count`."""
    if estimate is None:
        return "-"
    error = f" ± {estimate.error:.4f}" if estimate.error else ""
    left = f" of {estimate.count}" if estimate.count != count else ""
    return f"{estimate.mean:.4f}{error}{left}"
