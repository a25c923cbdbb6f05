"""Training curves as a PNG."""

import math

from absl import logging

COLUMNS = 3


def plot_curves(metrics, path, metric="accuracy"):
    """Plot each loss, and another metric, by epoch: one panel each, for training and dev.

    Losses are what ends in "loss"; a name with "val_" before it is the same of dev.

    Args:
        metrics: a list of dicts, `RunFolder.metrics()`.
        path: of the PNG.
        metric: the other metric; None for none.

    Returns:
        Whether it was plotted. Without matplotlib, a line is logged instead.
    """
    try:
        figure = draw_curves(metrics, metric)
    except ImportError:
        logging.info("No plot of the curves: install tfnlp[plots] for one.")
        return False
    figure.savefig(path, dpi=120)
    return True


def draw_curves(metrics, metric="accuracy"):
    """Return the matplotlib `Figure` that `plot_curves` saves."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    names = dict.fromkeys(name.removeprefix("val_") for m in metrics for name in m)
    losses = [name for name in names if name.endswith("loss")]
    # The whole loss first, whatever the order in which they were logged.
    panels = [*sorted(losses, key=lambda name: name != "loss"), *([metric] if metric else [])]
    epochs = [m["epoch"] for m in metrics]
    columns = min(COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(4.5 * columns, 3.5 * rows), layout="constrained")
    for number, key in enumerate(panels, 1):
        axes = figure.add_subplot(rows, columns, number)
        for name, label, color in ((key, "train", "C0"), (f"val_{key}", "dev", "C1")):
            if all(name in m for m in metrics):
                # JSON has no NaN: an epoch whose number was not finite is left out of the line.
                values = [math.nan if m[name] is None else m[name] for m in metrics]
                axes.plot(epochs, values, marker="o", color=color, label=label)
        axes.set_xlabel("epoch")
        axes.set_ylabel(key.replace("_", " "))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend()
    return figure
