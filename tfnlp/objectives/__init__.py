"""Pretraining objectives.

An objective is a subclass of `Objective` in a file of its own: it builds batches of inputs and
targets from a `Corpus`, and defines their losses and scores."""

from tfnlp.utils.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
