"""Unlabelled text: documents of sentences in files, and tokenised shards on disk.

This package imports neither TensorFlow nor Keras, so that tokenising processes start fast.

Decisions: docs/decisions/corpora.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
