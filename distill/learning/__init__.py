"""Training of a student on its teacher's outputs.

Decisions: docs/decisions/distillation.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
