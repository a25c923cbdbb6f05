"""Plots of what training logs."""

from tfnlp.plots.curves import plot_curves

__all__ = ["plot_curves"]
