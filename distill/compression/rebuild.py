"""Rebuilding a model from another config, with the same head and outputs."""

import numpy as np

from tfnlp.layers import get_ranges, set_ranges
from tfnlp.models import build_model


def rebuild(model, config):
    """Build a model of `config` with fresh weights, and the head and outputs of `model`.

    Args:
        model: from `tfnlp.models.build_model`.
        config: of the same family.

    Returns:
        A `TextModel`.
    """
    counted = model.head in ("classifier", "tagger")
    return build_model(
        config,
        model.head,
        model.output["logits"].shape[-1] if counted else None,
        hidden_states="hidden_states" in model.output,
        attention_scores="attention_scores" in model.output,
        attention_projections="queries" in model.output,
        memory="memory" in model.output,
        dtype=model.get_layer("embeddings").dtype_policy,
        block_size=model.block_size,
    )


def copy_weights(source, target, cut=lambda path, value: value):
    """Copy the weights and quantisation ranges of a model to the one rebuilt from it.

    Args:
        source, target: models whose weights have the same paths.
        cut: function of a weight's path and its value in `source`, to the value in `target`.
    """
    values = {weight.path: weight for weight in source.weights}
    for weight in target.weights:
        weight.assign(cut(weight.path, np.asarray(values[weight.path])))
    if ranges := get_ranges(source):
        set_ranges(target, ranges)
