"""Loading and saving of Hugging Face and keras-hub checkpoint folders.

Decisions: docs/decisions/checkpoints.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
