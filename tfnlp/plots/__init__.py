"""Pictures: PNGs of logs, sweeps and models, and HTML pages that need no network.

Decisions: docs/decisions/pages.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
