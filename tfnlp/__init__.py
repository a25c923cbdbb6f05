"""tfnlp: exact, fast Keras 3 layers and models for NLP transformers, up to export for phones.

Import from the subpackages, for example `from tfnlp.layers import MultiHeadAttention`. Importing
`tfnlp` itself loads nothing.
"""

from tfnlp.utils.public_names import attach

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach(__name__, __file__)
