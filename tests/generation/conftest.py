"""Searches as plain graphs."""

import pytest
import tensorflow as tf


@pytest.fixture
def no_xla(monkeypatch):
    """XLA takes seconds for searches of milliseconds; tests/parity has what it compiles."""
    function = tf.function

    def plain(*args, jit_compile=None, **kwargs):
        return function(*args, **kwargs)

    monkeypatch.setattr(tf, "function", plain)
