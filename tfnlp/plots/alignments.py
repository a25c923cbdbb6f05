"""Plot of alignments between target and source tokens, as a PNG."""

import math

from absl import logging

from tfnlp.plots.fonts import font_families, save_figure

COLUMNS = 4


def plot_alignments(weights, source, target, path):
    """Plot weights of target tokens over source tokens, one panel for each name.

    Args:
        weights: {name: (T, S)}, such as `tfnlp.inspection.alignments` gives.
        source: the S source tokens, strings.
        target: the T target tokens, strings.
        path: of the PNG.

    Returns:
        Whether it was plotted. Without matplotlib, a line is logged instead.

    Raises:
        ValueError: if weights have another shape.
    """
    try:
        figure = draw_alignments(weights, source, target)
    except ImportError:
        logging.info("No plot of the alignment: install tfnlp[plots] for one.")
        return False
    save_figure(figure, path)
    return True


def draw_alignments(weights, source, target):
    """Return the matplotlib `Figure` that `plot_alignments` saves."""
    from matplotlib.figure import Figure

    for name, matrix in weights.items():
        if tuple(matrix.shape) != (len(target), len(source)):
            raise ValueError(
                f"weights[{name!r}] has shape {tuple(matrix.shape)}, but there are {len(target)} "
                f"target tokens and {len(source)} source tokens."
            )
    columns = min(COLUMNS, len(weights))
    # Tokens as they are, not as mathematics.
    shown = {"family": font_families("sans-serif"), "parse_math": False}
    rows = math.ceil(len(weights) / columns)
    size = (1.5 + 0.3 * len(source)) * columns, (1.5 + 0.3 * len(target)) * rows
    figure = Figure(figsize=size, layout="constrained")
    for number, (name, matrix) in enumerate(weights.items(), 1):
        axes = figure.add_subplot(rows, columns, number)
        axes.imshow(matrix, cmap="gray", vmin=0, vmax=1, aspect="equal")
        axes.set_xticks(range(len(source)), source, rotation=90, **shown)
        axes.set_yticks(range(len(target)), target, **shown)
        axes.xaxis.tick_top()
        if len(weights) > 1:
            axes.set_title(name, fontsize="small")
    return figure
