"""Plot of gradient norms over time, as a PNG."""

from absl import logging


def plot_gradient_norms(norms, path):
    """Plot the norm of a gradient by the distance of the state in tokens, one line each.

    Args:
        norms: {name: (L,)}, from the first token on, as `tfnlp.inspection.gradient_norms` gives
            them.
        path: of the PNG.

    Returns:
        Whether it was plotted. Without matplotlib, a line is logged instead.
    """
    try:
        figure = draw_gradient_norms(norms)
    except ImportError:
        logging.info("No plot of the gradients: install tfnlp[plots] for one.")
        return False
    figure.savefig(path, dpi=120)
    return True


def draw_gradient_norms(norms):
    """Return the matplotlib `Figure` that `plot_gradient_norms` saves."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for name, values in norms.items():
        axes.plot(range(len(values)), values[::-1], label=name)
    axes.set_yscale("log")
    axes.set_xlabel("tokens back")
    axes.set_ylabel("norm of the last loss' gradient by the state")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure
