"""Loading and saving of Hugging Face and keras-hub checkpoint folders.

Decisions: docs/decisions/checkpoints.md.
"""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
