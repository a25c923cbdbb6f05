"""Functional models: a config in, a `keras.Model` from named inputs to a dict out.

The configs of `tfnlp.configs` are here too. Decisions: docs/decisions/models.md.
"""

from tfnlp import configs
from tfnlp.utils.public_names import attach

_load, __dir__, __all__ = attach(__name__, __file__)
__all__ += configs.__all__


def __getattr__(name):
    return getattr(configs, name) if name in configs.__all__ else _load(name)
