"""tfnlp: exact, fast Keras 3 layers and models for NLP transformers, up to export for phones.

Import from the subpackages, for example `from tfnlp.layers import MultiHeadAttention`. Importing
`tfnlp` itself loads nothing.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
