"""HTML page of a search: all students that were tried, and why the winner won."""

import html

import numpy as np

from distill.reports.pareto_frontier import pareto
from tfnlp.plots import html_page, html_table, svg_of

ROWS = 25  # of the table
COSTS = {"latency_ms": "predicted time of a text (ms)", "size_mb": "predicted size (MB)"}


def page(tried, budget, metric, facts):
    """Return the page of a search.

    Args:
        tried: the `Tried` students, the best first.
        budget: a `Budget`.
        metric: the name of the score.
        facts: a list of sentences.
    """
    plots = "".join(
        f'<figure class="plot">{_plot(tried, name, getattr(budget, name), metric)}</figure>'
        for name in COSTS
    )
    sentences = "".join(f"<p>{html.escape(x)}</p>\n" for x in (reason(tried, metric), *facts))
    return html_page(
        "A student to order",
        f"""<h1>A student to order</h1>
{sentences}<div class="beside">{plots}</div>
<p>Each point is a student that was tried, with the score of its parts of the supernet, before it
was trained alone. The line joins those that no other is faster (or smaller) than at the same
score; the star is the winner, the dashed line the budget.</p>
{html_table(rows(tried, metric), marked=[0])}
""",
    )


def reason(tried, metric):
    """Return why the first of `Tried` students won, a sentence."""
    best, *others = tried
    beaten = "it is the only one"
    if others:
        second = others[0]
        beaten = f"the next has {second.score:.4f} at {second.latency_ms:.2f} ms"
        if second.score == best.score:
            beaten = f"the next has as much at {second.latency_ms:.2f} ms"
    return (
        f"Of {len(tried)} students within the budget this one has the highest {metric}, "
        f"{best.score:.4f} at {best.latency_ms:.2f} ms: {best.student}; {beaten}."
    )


def rows(tried, metric):
    """Return a table's header and rows of texts, of the best students."""
    header = ["layers", "heads", "units", "tokens", metric, "ms", "MB"]
    cells = [
        [
            ",".join(map(str, x.student.layers)),
            str(x.student.num_heads),
            str(x.student.intermediate_dim),
            f"{x.student.vocabulary_size:,}",
            f"{x.score:.4f}",
            f"{x.latency_ms:.3f}",
            f"{x.size_mb:.2f}",
        ]
        for x in tried[:ROWS]
    ]
    return [header, *cells]


def _plot(tried, cost, limit, metric):
    """Return an SVG of the scores of students by a cost; a sentence without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "No plot: pip install matplotlib for it."
    points = np.array([(getattr(x, cost), x.score) for x in tried])
    best = np.array(pareto([*map(tuple, points)]))
    figure = Figure(figsize=(5.8, 4), layout="constrained")
    axes = figure.add_subplot(xlabel=COSTS[cost], ylabel=metric)
    axes.grid(alpha=0.3)
    axes.plot(*points[~best].T, "o", color="C7", markersize=4)
    axes.plot(*points[best][points[best][:, 0].argsort()].T, "o-", color="C0", linewidth=1)
    axes.plot(*points[0], "*", color="C3", markersize=14)
    if limit is not None:
        axes.axvline(limit, linestyle="--", color="C7")
    return svg_of(figure, f"{metric} by {COSTS[cost]}; the table has the numbers")
