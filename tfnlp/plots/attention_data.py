"""Attention as the page keeps it: 8 bits a number, the top entries of long rows, in base64."""

import base64

import numpy as np

from tfnlp.plots.attention_summary import head_sentence

# Columns from which on a row keeps its top entries alone, and how many.
LONG, KEPT = 64, 10
# Beginnings of the names of the layers that a layer map is of.
STACKS = ("layer", "encoder layer")


def quantize(values, low, high):
    """Return values from `low` to `high` as 8 bits, uint8; the nearest of 256 steps."""
    span = np.where(np.equal(high, low), 1, np.subtract(high, low))
    return np.clip(np.rint((values - low) / span * 255), 0, 255).astype("uint8")


def pack_text(attention, teacher=None, layer_map=None):
    """Return a `TextAttention` as a JSON object, and the patterns of its own heads.

    Args:
        attention: a `tfnlp.inspection.TextAttention`.
        teacher: that of the teacher, whose layers of `layer_map` stand beside; or None.
        layer_map: for each of the student's layers the teacher's, counted from 0.
    """
    tokens, entries, rows, patterns = dict(attention.tokens), [], [], []
    if teacher is not None:
        tokens |= {f"teacher's {name}": words for name, words in teacher.tokens.items()}
    for shown in _rows(attention, teacher, layer_map):
        rows.append([len(entries) + i for i in range(len(shown))])
        for layer, prefix in shown:
            entry, of_heads = _pack_layer(layer, prefix, tokens)
            entries.append(entry)
            patterns += [] if prefix else of_heads
    packed = {
        "texts": list(attention.texts),
        "tokens": tokens,
        "saliency": {name: _shares(x) for name, x in attention.saliency.items()},
        "prediction": attention.prediction,
        "answer": attention.answer,
        "entries": entries,
        "rows": rows,
        "positions": [_pack_positions(table) for table in attention.positions],
    }
    return packed, patterns


def _rows(attention, teacher, layer_map):
    """Yield lists of (layer, prefix of its tokens' names) that stand side by side."""
    layers, mapped, i = attention.layers, 0, 0
    while i < len(layers):
        pair = 2 if layers[i].stream else 1
        shown = [(layer, "") for layer in layers[i : i + pair]]
        if teacher is not None and layers[i].name.startswith(STACKS):
            others = [x for x in teacher.layers if x.name.startswith(STACKS)]
            shown += [(others[layer_map[mapped]], "teacher's ")]
            mapped += 1
        yield shown
        i += pair


def _pack_layer(layer, prefix, tokens):
    """Return a layer's JSON object and the patterns of its heads."""
    heads, _, columns = layer.weights.shape
    names = {"rows": f"{prefix}{layer.rows}", "columns": f"{prefix}{layer.columns}"}
    lists = {name.removeprefix(prefix): x for name, x in tokens.items() if name.startswith(prefix)}
    summaries = [head_sentence(layer, head, lists) for head in range(heads)]
    kept = None  # the places of the largest weights of each row, (N, T, KEPT)
    if columns > LONG:
        kept = np.argsort(-layer.weights, axis=-1, kind="stable")[..., :KEPT]
    views = {"weights": layer.weights, "scores": layer.scores} | layer.terms
    entry = names | {
        "name": f"{prefix}{layer.name}",
        "stream": layer.stream,
        "heads": heads,
        "sentences": [sentence for _, sentence in summaries],
        "hidden": _hidden(layer.visible),
        "kept": 0 if kept is None else KEPT,
        "index": "" if kept is None else _base64(kept.astype("<u2")),
        "views": {
            name: _pack_view(values, layer.visible, kept, name == "weights")
            for name, values in views.items()
        },
        "shares": {name: np.round(x, 4).tolist() for name, x in layer.shares.items()},
        "saliency": [_shares(x) for x in layer.saliency],
    }
    return entry, [pattern for pattern, _ in summaries]


def _pack_view(values, visible, kept, is_share):
    """Return the range of each head and the numbers between as 8 bits.

    Of shares in long rows these are the roots: each of hundreds has less than a 256th, and steps
    of that size would show a pattern in a head that is nearly flat.
    """
    low, high = np.zeros(len(values)), np.ones(len(values))
    if not is_share:
        low = np.where(visible, values, np.inf).min((1, 2))
        high = np.where(visible, values, -np.inf).max((1, 2))
        low, high = (np.where(np.isfinite(x), x, 0) for x in (low, high))

    def packed(x):
        x = np.sqrt(x) if is_share and kept is not None else x
        return _base64(quantize(x, low[:, None, None], high[:, None, None]))

    view = {"low": np.round(low, 5).tolist(), "high": np.round(high, 5).tolist()}
    if kept is not None:
        view["rest"] = packed(_mean_of_rest(values, visible, kept))
        values = np.take_along_axis(values, kept, -1)
    return view | {"data": packed(values)}


def _mean_of_rest(values, visible, kept):
    """Return the mean of what each row has beside its kept entries, (N, T, 1).

    Without it the largest entries of a head that is nearly flat would look like a pattern.
    """
    left_out = np.broadcast_to(visible, values.shape).copy()
    np.put_along_axis(left_out, kept, False, -1)
    counts = left_out.sum(-1, keepdims=True)
    return np.where(left_out, values, 0).sum(-1, keepdims=True) / np.maximum(counts, 1)


def _hidden(visible):
    """Return what must not be seen as bits, of one head where all are alike; "" for nothing."""
    if visible.all():
        return ""
    alike = (visible == visible[:1]).all()
    return _base64(np.packbits(~(visible[:1] if alike else visible)))


def _pack_positions(table):
    similarity, ones = table.similarity[None], np.ones((1,) * 3, bool)
    low, high = float(table.rows.min()), float(table.rows.max())
    return {
        "name": table.name,
        "labels": table.labels,
        "views": {"similarity": _pack_view(similarity, ones, None, is_share=False)},
        "width": table.rows.shape[1],
        "low": low,
        "high": high,
        "data": _base64(quantize(table.rows, low, high)),
    }


def _shares(values):
    """Return numbers over the sum of their sizes, as a list; zeros stay zeros."""
    total = np.abs(values).sum()
    return np.round(values / (total if total else 1), 4).tolist()


def _base64(array):
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
