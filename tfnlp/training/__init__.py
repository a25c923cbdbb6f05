"""Training: strategies, schedules, run folders, and a `fit` that resumes exactly.

Decisions: docs/decisions/training.md.
"""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
