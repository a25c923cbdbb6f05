"""Training curves as a PNG."""

from absl import logging


def plot_curves(metrics, path, metric="accuracy"):
    """Plots the loss and another metric by epoch, training and dev.

    Args:
        metrics: a list of dicts, `RunFolder.metrics()`.
        path: of the PNG.
        metric: the other metric.

    Returns:
        Whether it was plotted; where matplotlib is not installed, a line says so instead.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError:
        logging.info("No plot of the curves: install tfnlp[plots] for one.")
        return False
    epochs = [m["epoch"] for m in metrics]
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    for axes, key in zip(figure.subplots(1, 2), ("loss", metric), strict=True):
        for name, label in ((key, "train"), (f"val_{key}", "dev")):
            if all(name in m for m in metrics):
                axes.plot(epochs, [m[name] for m in metrics], marker="o", label=label)
        axes.set_xlabel("epoch")
        axes.set_ylabel(key)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend()
    figure.savefig(path, dpi=120)
    return True
