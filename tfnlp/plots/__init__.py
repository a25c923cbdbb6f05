"""Plots of training logs, sweeps and model internals."""

from tfnlp.plots.alignments import plot_alignments
from tfnlp.plots.cell_activations import plot_activations
from tfnlp.plots.curves import plot_curves
from tfnlp.plots.gradient_norms import plot_gradient_norms
from tfnlp.plots.variants import plot_variants

__all__ = [
    "plot_activations",
    "plot_alignments",
    "plot_curves",
    "plot_gradient_norms",
    "plot_variants",
]
