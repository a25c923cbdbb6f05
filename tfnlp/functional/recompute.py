"""Activation recomputation (gradient checkpointing) of blocks."""

import functools

import keras
from keras import ops
from keras.src.backend import AutocastScope  # not public, and there is no other way

from tfnlp.functional.masks import set_mask


def recomputable(call):
    """Decorate a layer's `call`: recompute it in training if `recompute` is true.

    Chen et al. 2016, 'Training deep nets with sublinear memory cost', section 4.1: only the
    inputs of each block are kept. Dropout draws the same mask the second time, and assignments
    to variables happen once; `keras.remat` ensures neither.
    """

    @functools.wraps(call)
    def recomputing(self, *args, **kwargs):
        if not (self.recompute and kwargs.get("training")):
            return call(self, *args, **kwargs)
        arguments = keras.tree.flatten((args, kwargs))
        moves = [i for i, x in enumerate(arguments) if _has_gradient(x)]
        # State before the first call: seeds and all else that a call changes.
        with AutocastScope(None):
            states = [(v, ops.copy(v)) for v in self.non_trainable_variables]
        structure = []

        def compute(*tensors):
            flat = list(arguments)
            for i, tensor in zip(moves, tensors, strict=True):
                flat[i] = tensor
            positional, named = keras.tree.pack_sequence_as((args, kwargs), flat)
            if not structure:
                results = call(self, *positional, **named)
                structure.append(results)
            else:
                with uncast_scope(states):
                    results = call(self, *positional, **named)
            return keras.tree.flatten(results)

        outputs = keras.tree.flatten(keras.remat(compute)(*(arguments[i] for i in moves)))
        for output, first in zip(outputs, keras.tree.flatten(structure[0]), strict=True):
            set_mask(output, getattr(first, "_keras_mask", None))
        return keras.tree.pack_sequence_as(structure[0], outputs)

    return recomputing


def uncast_scope(values):
    """Return a `keras.StatelessScope` in which variables have these values, (variable, tensor).

    Made within a layer of half precision, Keras' own would cast the values before it keeps them:
    each would differ from the variable's, and a float32 layer would compute with rounded weights.
    """
    with AutocastScope(None):
        return keras.StatelessScope(values)


def _has_gradient(x):
    """Return whether an argument is a tensor of a float type; False for a symbolic one."""
    return ops.is_tensor(x) and keras.backend.is_float_dtype(
        keras.backend.standardize_dtype(x.dtype)
    )


def recompute_blocks(model):
    """Turn on activation recomputation in all blocks of a `keras.Model`.

    Training steps compute the same, take about a third longer, and hold the activations of one
    block at a time beside the inputs of all blocks.
    """
    for layer in model._flatten_layers():
        if hasattr(layer, "recompute"):
            layer.recompute = True
