"""Blocks of one kind that TensorFlow traces once for all of them."""

import contextlib
import functools

import tensorflow as tf
from keras.src.backend.common.stateless_scope import in_stateless_scope

from tfnlp.functional.recompute import uncast_scope
from tfnlp.layers.blocks.base_block import BaseBlock


@contextlib.contextmanager
def shared_traces(model):
    """Make blocks that differ by their weights alone calls of one function in training steps.

    After the context the blocks are as they were before.

    The function takes the weights as arguments. TensorFlow traces it and its gradient once, and
    then puts a copy in the place of each call, so that the steps compute the same. Blocks that are
    recomputed, or whose layers penalise what they give, are left as they are.
    """
    kinds = {}
    for layer in model._flatten_layers():
        if isinstance(layer, BaseBlock) and not layer.recompute and not _is_penalised(layer):
            kinds.setdefault(block_kind(layer), []).append(layer)
    for blocks in kinds.values():
        function = traced_block(blocks[0])
        for block in blocks:
            block.call = functools.partial(_call, block, function)
    try:
        yield
    finally:
        for blocks in kinds.values():
            for block in blocks:
                del block.call


def traced_block(block):
    """Return a `tf.function` of a block's variables and arguments.

    It returns the outputs, and {place: value} of the variables that a call changes, such as seeds.
    """

    @tf.function(autograph=False)
    def call(values, args, kwargs):
        with uncast_scope(zip(block.variables, values, strict=True)) as scope:
            outputs = type(block).call(block, *args, **kwargs)
        new = [scope.get_current_value(variable) for variable in block.variables]
        pairs = enumerate(zip(new, values, strict=True))
        return outputs, {place: value for place, (value, old) in pairs if value is not old}

    return call


def _call(block, function, *args, **kwargs):
    """Call a block by the function of its kind, within the graph of a training step only."""
    if not (kwargs.get("training") and tf.inside_function()) or in_stateless_scope():
        return type(block).call(block, *args, **kwargs)
    # `value` would be cast already under mixed precision.
    values = [tf.convert_to_tensor(variable._value) for variable in block.variables]
    outputs, changed = function(values, args, kwargs)
    for place, value in changed.items():
        block.variables[place].assign(value)
    return outputs


def _is_penalised(block):
    return any(layer.activity_regularizer for layer in block._flatten_layers())


def block_kind(block):
    """Return what blocks that compute the same by other weights have in common, as text."""
    layers = [
        (
            type(layer).__name__,
            layer.dtype_policy.name,
            getattr(layer, "is_fake_quantized", False),
            layer.get_config(),
        )
        for layer in block._flatten_layers()
    ]
    variables = [(tuple(v.shape), v.dtype, v.trainable) for v in block.variables]
    return repr((_computed(layers), variables))


def _computed(config):
    """Return a config without what a call does not depend on: names, and how weights begin."""
    if isinstance(config, dict):
        return {
            key: _computed(value)
            for key, value in config.items()
            if key not in ("name", "build_config", "shared_object_id")
            and not key.endswith("_initializer")
        }
    return [_computed(value) for value in config] if isinstance(config, list | tuple) else config
