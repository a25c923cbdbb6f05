"""Plots of training logs, sweeps and model internals."""

from .alignments import plot_alignments as plot_alignments
from .cell_activations import plot_activations as plot_activations
from .curves import plot_curves as plot_curves
from .gradient_norms import plot_gradient_norms as plot_gradient_norms
from .variants import plot_variants as plot_variants
