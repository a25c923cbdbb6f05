"""Training: strategies, schedules, run folders, and a `fit` that resumes exactly.

Decisions: docs/decisions/training.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
