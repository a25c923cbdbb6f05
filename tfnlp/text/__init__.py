"""Text to token ids: tokenizers, readers of labelled files, batches by length.

Decisions: docs/decisions/text.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
