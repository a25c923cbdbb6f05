"""Distillation of a fine-tuned teacher into a small student for a phone.

`distill.runtime` imports neither TensorFlow nor Keras, so it runs where only LiteRT is installed.
"""
