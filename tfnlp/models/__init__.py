"""Functional models: a config in, a `keras.Model` from named inputs to a dict out.

The configs of `tfnlp.configs` are here too. Decisions: docs/decisions/models.md.
"""

import lazy_loader

from tfnlp import configs

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += configs.__all__


def __getattr__(name):
    return getattr(configs, name) if name in configs.__all__ else _load(name)
