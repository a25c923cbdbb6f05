"""Training of a student on its teacher's outputs.

Decisions: docs/decisions/distillation.md.
"""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
