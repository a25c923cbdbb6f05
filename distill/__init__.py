"""Distillation of a fine-tuned teacher into a small student for a phone.

`distill.runtime` imports neither TensorFlow nor Keras, so it runs where only LiteRT is installed.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
