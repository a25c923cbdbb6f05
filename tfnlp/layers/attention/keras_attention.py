"""Layers that equal `keras.layers.MultiHeadAttention`."""

import keras
from keras import ops


def layer_from_keras(cls, attention):
    """Return a built `cls` that equals a `keras.layers.MultiHeadAttention`, weights too.

    `MultiHeadAttention.from_keras` says more.
    """
    _check_keras(attention)
    config = attention.get_config()
    shared = ("num_heads", "key_dim", "value_dim", "dropout", "use_bias")
    shared += ("activity_regularizer", "kernel_initializer", "trainable", *cls.OPTIONS)
    layer = cls(
        **{name: config[name] for name in shared},
        output_dim=attention.output_dense.kernel.shape[-1],
        dtype=attention.dtype_policy,
    )
    parts = {name: getattr(attention, f"{name}_dense") for name in ("query", "value", "key")}
    layer.build(*((None, None, part.kernel.shape[0]) for part in parts.values()))
    for name, part in (parts | {"output_dense": attention.output_dense}).items():
        dense = getattr(layer, name)
        dense.kernel.assign(ops.reshape(part.kernel, dense.kernel.shape))
        if part.bias is not None:
            dense.bias.assign(ops.reshape(part.bias, dense.bias.shape))
    return layer


def _check_keras(attention):
    """Raise a ValueError unless `attention` is built and equals what this layer computes."""
    if not isinstance(attention, keras.layers.MultiHeadAttention):
        raise ValueError(f"attention={attention!r} must be a keras.layers.MultiHeadAttention.")
    if not attention.built:
        raise ValueError(f"attention {attention.name!r} is not built; call it on inputs first.")
    config, output = attention.get_config(), attention.output_dense.kernel.shape
    if len(output) != 3:
        raise ValueError(
            f"attention has output_shape={config['output_shape']}, but must have one axis."
        )
    due = {"use_gate": (False,), "sliding_window": (None,), "attention_axes": ((1,), [1])}
    for name, allowed in due.items():
        if config[name] not in allowed:
            raise ValueError(
                f"attention has {name}={config[name]!r}, but must have {allowed[0]!r}."
            )
