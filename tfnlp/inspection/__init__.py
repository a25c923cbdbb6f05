"""Numbers of what a model does inside: attention, alignments, activations, gradients over time."""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
