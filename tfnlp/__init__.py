"""tfnlp: exact, fast Keras 3 layers and models for NLP transformers, up to export for phones.

Import from the subpackages, for example `from tfnlp.layers import MultiHeadAttention`. Importing
`tfnlp` itself loads nothing.
"""

__version__ = "0.1.0"
