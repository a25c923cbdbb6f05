"""Knowledge from outside the text: graphs, mentions of their entities, vectors of both.

Decisions: docs/decisions/knowledge.md.
"""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
