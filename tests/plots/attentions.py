"""Attention of made-up numbers, without a model."""

import numpy as np

from tfnlp.inspection import LayerAttention, TextAttention


def layer_of(heads, length, columns=None, *, name="layer 1", stream="", terms=(), causal=False):
    """Return a `LayerAttention` whose first head looks at the previous token."""
    rng = np.random.default_rng(length)
    shape = heads, length, columns or length
    parts = {term: rng.normal(size=shape) for term in terms or ("all",)}
    next(iter(parts.values()))[0] += 8 * np.eye(*shape[1:], k=-1)
    scores = sum(parts.values())
    visible = np.broadcast_to(np.tri(*shape[1:], dtype=bool) if causal else np.True_, shape)
    weights = np.exp(np.where(visible, scores, -np.inf))
    weights = (weights / weights.sum(-1, keepdims=True)).astype("float32")
    names = name, stream, "tokens", "tokens" if columns is None else "source"
    saliency = rng.normal(size=(heads, shape[2]))
    return LayerAttention(*names, scores, weights, visible, parts if terms else {}, saliency)


def text_of(layers, tokens=None, texts=("a text",), positions=()):
    """Return a `TextAttention` of layers, whose tokens are numbered unless given."""
    tokens = tokens or [f"t{i}" for i in range(layers[0].weights.shape[1])]
    lists = {"tokens": tokens, "source": [f"s{i}" for i in range(layers[0].weights.shape[2])]}
    saliency = {"tokens": np.arange(1.0, len(tokens) + 1)}
    return TextAttention("bert", texts, lists, list(layers), saliency, "the logits", positions)
