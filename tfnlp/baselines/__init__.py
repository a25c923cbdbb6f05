"""Classical methods: bags of words, linear classifiers, vectors of words, distances of documents.

Decisions: docs/decisions/baselines.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
