"""tfnlp: exact, fast Keras 3 layers and models for NLP transformers, and the road to a phone.

Import what is needed from its subpackage, for example
`from tfnlp.layers import MultiHeadAttention`; importing `tfnlp` itself costs nothing.
"""

__version__ = "0.1.0"
