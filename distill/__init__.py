"""From a fine-tuned teacher to a small student on a phone.

`distill.runtime` imports neither TensorFlow nor Keras, so that it runs where only LiteRT is.
"""
