"""Classical methods: bags of words, linear classifiers, n-grams, word vectors, distances.

Decisions: docs/decisions/baselines.md.
"""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
