"""Export of models to .tflite files with metadata.

Decisions: docs/decisions/export.md.
"""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
