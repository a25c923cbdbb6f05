"""Activations by the name that checkpoints use for them."""

import keras
from keras import ops


def gelu(x):
    """Exact GELU, x * Phi(x) (Hendrycks & Gimpel 2016, eq. 1), through the error function."""
    return ops.gelu(x, approximate=False)


def gelu_tanh(x):
    """The tanh approximation of GELU (Hendrycks & Gimpel 2016, section 2)."""
    return ops.gelu(x, approximate=True)


ACTIVATIONS = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": ops.relu,
    "silu": ops.silu,
    "tanh": ops.tanh,
}


def get_activation(name):
    """The function that `name` stands for; a callable is returned as it is.

    Raises:
        ValueError: if `name` is neither one of `ACTIVATIONS` nor an activation of Keras.
    """
    if callable(name):
        return name
    if name in ACTIVATIONS:
        return ACTIVATIONS[name]
    try:
        return keras.activations.get(name)
    except ValueError:
        raise ValueError(
            f"activation={name!r} is unknown; use one of {sorted(ACTIVATIONS)}, "
            "the name of a Keras activation, or a callable."
        ) from None
