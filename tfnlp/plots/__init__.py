"""Plots of what training logs and sweeps find."""

from tfnlp.plots.curves import plot_curves
from tfnlp.plots.variants import plot_variants

__all__ = ["plot_curves", "plot_variants"]
