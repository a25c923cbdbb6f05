"""Activations by their names in checkpoints."""

import math

import keras
from keras import ops


def gelu(x):
    """Compute exact GELU, x * Phi(x) (Hendrycks & Gimpel 2016, eq. 1), by the error function."""
    return 0.5 * x * (1.0 + ops.erf(x * math.sqrt(0.5)))


# Models name it in their configs.
@keras.saving.register_keras_serializable("tfnlp", name="gelu")
def fused_gelu(x):
    """Compute `gelu` with its gradient in one expression, in fewer passes than `ops.gelu`.

    In float32 at least: processors compute the error function in half precision at half the
    speed, and 1 + erf cancels there. TFLite recognises the forward form as its GELU.
    """
    return _fused_gelu(x)


@ops.custom_gradient
def _fused_gelu(x):
    dtype = keras.backend.result_type(x.dtype, "float32")
    x32 = ops.cast(x, dtype)
    twice_phi = 1.0 + ops.erf(x32 * math.sqrt(0.5))
    kept = ops.cast(twice_phi, x.dtype)

    def gradient(*args, upstream=None):
        upstream = args[0] if upstream is None else upstream
        upstream, x32, twice_phi = (ops.cast(t, dtype) for t in (upstream, x, kept))
        density = ops.exp(ops.square(x32) * -0.5) * (1 / math.sqrt(2 * math.pi))
        return ops.cast(upstream * (0.5 * twice_phi + x32 * density), x.dtype)

    return ops.cast(0.5 * x32 * twice_phi, x.dtype), gradient


@keras.saving.register_keras_serializable("tfnlp")
def gelu_tanh(x):
    """Compute the tanh approximation of GELU (Hendrycks & Gimpel 2016, section 2)."""
    return ops.gelu(x, approximate=True)


ACTIVATIONS = {
    "gelu": fused_gelu,
    "gelu_tanh": gelu_tanh,
    "relu": ops.relu,
    "silu": ops.silu,
    "tanh": ops.tanh,
}


def get_activation(name):
    """Return the activation named `name`; a callable is returned unchanged.

    Raises:
        ValueError: if `name` is neither one of `ACTIVATIONS` nor an activation of Keras.
    """
    if callable(name):
        return name
    if name in ACTIVATIONS:
        return ACTIVATIONS[name]
    return keras.activations.get(name)
