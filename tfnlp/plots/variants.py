"""Plot of variants' figures over seeds, as a PNG."""

import math

from absl import logging

COLUMNS = 2


def plot_variants(runs, summary, base, path):
    """Plot each figure by variant: a point per seed, and the mean with its standard error.

    Args:
        runs: {variant: {seed: {name: number}}}.
        summary: of them, from `tfnlp.utils.seed_statistics.summarise_variants`.
        base: the variant that others are compared with; its mean is a line.
        path: of the PNG.

    Returns:
        Whether it was plotted. Without matplotlib, a line is logged instead.
    """
    try:
        figure = draw_variants(runs, summary, base)
    except ImportError:
        logging.info("No plot of the variants: install tfnlp[plots] for one.")
        return False
    figure.savefig(path, dpi=120)
    return True


def draw_variants(runs, summary, base):
    """Return the matplotlib `Figure` that `plot_variants` saves."""
    from matplotlib.figure import Figure

    names = list(summary)
    metrics = list(summary[names[0]])
    columns = min(COLUMNS, len(metrics))
    rows = math.ceil(len(metrics) / columns)
    size = (5.5 * columns, (1.2 + 0.35 * len(names)) * rows)
    figure = Figure(figsize=size, layout="constrained")
    for number, metric in enumerate(metrics, 1):
        axes = figure.add_subplot(rows, columns, number)
        for place, name in enumerate(names):
            values = [figures.get(metric) for figures in runs[name].values()]
            values = [v for v in values if v is not None]
            axes.plot(values, [place] * len(values), "o", color="C7", alpha=0.5, markersize=4)
            estimate = summary[name][metric].estimate
            if estimate is not None:
                color = "C0" if name == base else "C1"
                axes.errorbar(
                    estimate.mean, place, xerr=estimate.error, fmt="D", color=color, capsize=4
                )
                if name == base:
                    axes.axvline(estimate.mean, color=color, alpha=0.4, linestyle="--")
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel(metric.replace("_", " "))
        axes.grid(alpha=0.3, axis="x")
    return figure
