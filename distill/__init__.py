"""Distillation of a fine-tuned teacher into a small student for a phone.

`distill.runtime` imports neither TensorFlow nor Keras, so it runs where only LiteRT is installed.
"""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
