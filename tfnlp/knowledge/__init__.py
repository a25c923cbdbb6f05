"""Knowledge from outside the text: graphs, mentions of their entities, vectors of both.

Decisions: docs/decisions/knowledge.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
