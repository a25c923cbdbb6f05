"""Pictures: PNGs of logs, sweeps and models, and HTML pages that need no network.

Decisions: docs/decisions/pages.md.
"""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
