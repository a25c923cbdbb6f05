"""Unlabelled text: documents of sentences in files, and tokenised shards on disk.

This package imports neither TensorFlow nor Keras, so that tokenising processes start fast.

Decisions: docs/decisions/corpora.md.
"""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
