"""Rebuilding a model from another config, with the same head, outputs and weights."""

import numpy as np

from distill.learning.student import build_like
from tfnlp.layers import get_ranges, set_ranges
from tfnlp.layers.core.merged_weights import merged_weights


def rebuild(model, config, cut):
    """Build a model of `config`, with the head, outputs, ranges and cut weights of `model`.

    Args:
        model: from `tfnlp.models.build_model`.
        config: of the same family.
        cut: function of a new weight and the old one's value, to its value.

    Returns:
        A `TextModel`.
    """
    smaller = build_like(
        model,
        config,
        memory="memory" in model.output,
        dtype=model.get_layer("embeddings").dtype_policy,
        block_size=model.block_size,
    )
    values = merged_weights(model)
    for weight in smaller.weights:
        weight.assign(cut(weight, np.asarray(values[weight.path])))
    if ranges := get_ranges(model):
        set_ranges(smaller, ranges)
    return smaller
