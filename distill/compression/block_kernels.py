"""Dense kernels of a model's blocks, which pruning and clustering change in training."""

import dataclasses
import re

import tensorflow as tf

from tfnlp.utils.errors import InputError


def block_kernels(model):
    """Return the dense kernels of a model's blocks, a list, without tables and heads."""
    return [
        weight
        for weight in model.weights
        if re.match(r"encoder(_\d+)?/", weight.path)
        and weight.path.endswith("/kernel")
        and len(weight.shape) == 2
    ]


@dataclasses.dataclass
class Untracked:
    """List whose items a Keras layer does not track as its own weights."""

    items: list


def kernels_to_compress(model, verb):
    """Return the `block_kernels` of a model in training, as `Untracked`.

    Args:
        model: from `tfnlp.models.build_model`.
        verb: "prune" or "cluster", for messages.

    Raises:
        InputError: under a strategy of several replicas, or if the model has no blocks.
    """
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if replicas > 1:
        raise InputError(
            f"Only one device can {verb} weights, but the strategy has {replicas} replicas; use "
            "strategy='one_device'."
        )
    kernels = block_kernels(model)
    if not kernels:
        raise InputError(f"Model {model.name} has no blocks of dense kernels to {verb}.")
    return Untracked(kernels)
