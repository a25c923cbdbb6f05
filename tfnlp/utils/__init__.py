"""Utilities without TensorFlow, which also run on devices."""
