"""Public names of packages, loaded when asked, without the notices of TensorFlow's import."""

import os
import sys
from importlib.machinery import PathFinder

import lazy_loader

from tfnlp.utils.native_notices import without_notices

# TensorFlow reads it as it is imported. Below 3 it tells what it finds no graphics card by.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
_INSTALLED = PathFinder.find_spec("tensorflow") is not None


def attach(package, file):
    """Return `__getattr__`, `__dir__` and `__all__` of a package, by the stub beside its file."""
    load, names, public = lazy_loader.attach_stub(package, file)

    def load_quietly(name):
        if not _INSTALLED or "tensorflow" in sys.modules:
            return load(name)
        with without_notices(wait=False):
            return load(name)

    return load_quietly, names, public
