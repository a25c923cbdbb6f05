"""Text to token ids: tokenizers, readers of labelled files, batches by length.

Decisions: docs/decisions/text.md.
"""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
