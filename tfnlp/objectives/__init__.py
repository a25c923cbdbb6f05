"""Pretraining objectives.

An objective is a subclass of `Objective` in a file of its own: it builds batches of inputs and
targets from a `Corpus`, and defines their losses and scores."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
