"""Model configs: sizes and rates of every family, without Keras."""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
