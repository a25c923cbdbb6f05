"""The mathematics of the layers and losses: attention, scores, masks, positions, means.

Decisions: docs/decisions/attention.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
