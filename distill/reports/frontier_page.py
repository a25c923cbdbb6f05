"""Comparison of files as a table, and as one self-contained HTML page."""

import html
import math

from distill.reports.operator_profile import xnnpack_share
from distill.reports.pareto_frontier import LENGTH, pareto
from tfnlp.tasks.confusion_matrix import matrix_rows

# Horizontal axes: a title, and a function of a candidate.
COSTS = {
    "size": ("size (MB)", lambda c: c.size_mb),
    "latency": (f"one thread, {LENGTH} tokens (ms)", lambda c: c.latency_ms),
}
# Name of the row with the score of the commonest label, or of the mean.
BASELINE = "(baseline)"
_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1100px; margin: 2em auto }
table { border-collapse: collapse; margin: 1em 0 }
td, th { padding: .25em .7em; text-align: right }
td:first-child, th:first-child { text-align: left } tr { border-bottom: 1px solid #ddd }
tr.best { background: #eaf3ff } svg { width: 520px; max-width: 100%; font-size: 12px }
"""
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 520, 360, 60, 46, 14, 20


def table_rows(candidates, metric):
    """Return the header and a row of texts for each candidate, the smallest first."""
    shown = sorted(candidates, key=lambda c: (c.size_mb, c.name))
    best = {name: _frontier(shown, of) for name, (_, of) in COSTS.items()}
    agreement = any(c.agreement for c in shown)
    header = ["model", metric, *(["agreement"] if agreement else [])]
    header += ["MB", "ms at 16", "ms at 32", "ms at 128", "first call ms", "create ms"]
    rows = [[*header, "ms, mixed / equal lengths", "peak MB", "frontier"]]
    for c in shown:
        warm = c.figures["latency_ms"]["1"]
        count = len(c.paths)
        row = [c.name, _estimate(c.score, count)]
        row += [_estimate(c.agreement, count)] if agreement else []
        row += [f"{c.size_mb:.2f}", *(_milliseconds(warm.get(str(n))) for n in (16, 32, 128))]
        row += [f"{c.figures[name]:.1f}" for name in ("first_call_ms", "create_ms")]
        row += [f"{c.figures['mixed_ms'] / c.figures['equal_ms']:.2f}"]
        row += [f"{c.figures['peak_memory_mb']:.0f}"]
        rows.append([*row, " ".join(name for name in COSTS if c.name in best[name])])
    if shown[0].baseline is not None:
        score = f"{shown[0].baseline:.4f}"
        rows.append([BASELINE, score, *["-"] * (len(rows[0]) - 3), ""])
    return rows


def page(candidates, metric, title):
    """Return the HTML page: a plot for each cost, the table, and each file's operator profile."""
    rows = table_rows(candidates, metric)
    plots = []
    for label, cost in COSTS.values():
        shown = [c for c in candidates if cost(c) is not None]
        points = [(cost(c), c.score.mean, c.score.error, c.name) for c in shown]
        plots += [f"{scatter(points, label, metric)}\n"] if points else []
    profiles = "\n".join(_profile(c) for c in candidates if c.operators)
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
{"".join(plots)}{_table(rows, marks=True)}
{answers}<h2>Operators</h2>
<p>Time of each kind of operator at {LENGTH} tokens, or as many as the file takes, measured with
LiteRT's profiler on.</p>
{profiles}
</body>
</html>
"""


def scatter(points, label, metric):
    """Return an SVG of (cost, score, error or None, name) points, with the frontier joined."""
    best = pareto([(cost, value) for cost, value, _, _ in points])
    x = _Axis([cost for cost, *_ in points], _LEFT, _WIDTH - _RIGHT, from_zero=True)
    errors = [(value, error or 0) for _, value, error, _ in points]
    spread = [v + s * e for v, e in errors for s in (-1, 1)]
    y = _Axis(spread, _HEIGHT - _BOTTOM, _TOP)
    parts = []
    for tick in x.ticks:
        parts.append(_line(x(tick), _TOP, x(tick), _HEIGHT - _BOTTOM, "#eee"))
        parts.append(_text(x(tick), _HEIGHT - _BOTTOM + 16, f"{tick:g}", "middle"))
    for tick in y.ticks:
        parts.append(_line(_LEFT, y(tick), _WIDTH - _RIGHT, y(tick), "#eee"))
        parts.append(_text(_LEFT - 6, y(tick) + 4, f"{tick:g}", "end"))
    parts.append(_text((_LEFT + _WIDTH) / 2, _HEIGHT - 8, label, "middle"))
    parts.append(_text(_LEFT, _TOP - 2, metric, "start"))
    joined = sorted((p for p, is_best in zip(points, best, strict=True) if is_best))
    line = " ".join(f"{x(cost):.1f},{y(value):.1f}" for cost, value, *_ in joined)
    parts.append(f'<polyline points="{line}" fill="none" stroke="#1f77b4" stroke-dasharray="4"/>')
    for (cost, value, error, name), is_best in zip(points, best, strict=True):
        color = "#1f77b4" if is_best else "#999"
        if error:
            parts.append(_line(x(cost), y(value - error), x(cost), y(value + error), color))
        said = html.escape(f"{name}: {value:.4f}, {cost:.3g}")
        circle = f'<circle cx="{x(cost):.1f}" cy="{y(value):.1f}" r="5" fill="{color}">'
        parts.append(f"{circle}<title>{said}</title></circle>")
        # Names near the right edge go to the left, or they would be cut off.
        left = x(cost) > 0.7 * _WIDTH
        place = x(cost) + (-9 if left else 9)
        parts.append(_text(place, y(value) + 4, name, "end" if left else "start"))
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{"".join(parts)}</svg>'


class _Axis:
    """Linear scale from values to coordinates, with round ticks."""

    def __init__(self, values, start, end, from_zero=False):
        low, high = min(values), max(values)
        low = 0.0 if from_zero else low
        room = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
        self.low, self.high = (0.0 if from_zero else low - room), high + room
        self.start, self.end = start, end
        step = 10 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next(f for f in (1, 2, 5, 10) if (self.high - self.low) / (f * step) <= 6)
        first = math.ceil(self.low / step)
        count = math.floor(self.high / step) - first + 1
        self.ticks = [round((first + i) * step, 10) for i in range(count)]

    def __call__(self, value):
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def _line(x1, y1, x2, y2, color):
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{color}"/>'


def _text(x, y, text, anchor):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _table(rows, marks=False):
    """Return an HTML table of texts, the header first; `marks` rows with a non-empty last text."""
    header, *rest = rows
    lines = ["<table>", f"<tr>{''.join(f'<th>{html.escape(c)}</th>' for c in header)}</tr>"]
    for row in rest:
        cells = "".join(f"<td>{html.escape(c)}</td>" for c in row)
        mark = ' class="best"' if marks and row[-1] else ""
        lines.append(f"<tr{mark}>{cells}</tr>")
    return "\n".join([*lines, "</table>"])


def _profile(candidate):
    found = candidate.operators
    rows = [["operator", "runs in", "calls", "ms", "share"]]
    for row in found["operators"]:
        share = row["ms"] / found["ms"] if found["ms"] else 0.0
        texts = [row["operator"], row["runs_in"], f"{row['calls']:g}", f"{row['ms']:.3f}"]
        rows.append([*texts, f"{share:.1%}" if share >= 0.0005 else ""])
    said = f"{candidate.name}: {found['ms']:.2f} ms, {xnnpack_share(found)}"
    return f"<details><summary>{html.escape(said)}</summary>\n{_table(rows)}\n</details>"


def _counts(candidate):
    """Return HTML of a candidate's confusion matrix, and of its only answer if it has one."""
    matrix, answer = (candidate.counts.get(key) for key in ("confusion", "only_answer"))
    lines = []
    if matrix is not None:
        name, table = html.escape(candidate.name), _table(matrix_rows(matrix))
        lines.append(f"<details><summary>{name}</summary>\n{table}\n</details>")
    if answer is not None:
        said = html.escape(f"{candidate.name} says {answer} of all texts, which differ.")
        lines.append(f"<p>{said}</p>")
    return "\n".join(lines)


def _frontier(candidates, cost):
    """Return the names of the candidates on the frontier, among those that have the cost."""
    there = [c for c in candidates if cost(c) is not None]
    marks = pareto([(cost(c), c.score.mean) for c in there])
    return {c.name for c, is_best in zip(there, marks, strict=True) if is_best}


def _milliseconds(ms):
    return "-" if ms is None else f"{ms:.2f}"


def _estimate(estimate, count):
    """Format an estimate, with the number of its values if it is not `count`."""
    if estimate is None:
        return "-"
    error = f" ± {estimate.error:.4f}" if estimate.error else ""
    left = f" of {estimate.count}" if estimate.count != count else ""
    return f"{estimate.mean:.4f}{error}{left}"
