"""Compression of models: pruning, clustering, quantisation.

Decisions: docs/decisions/compression.md.
"""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
