"""Sentences that sum up a head: where it looks, in plain words."""

import collections

import numpy as np

# Share of the attention from which on a pattern names a head, and a second pattern is added.
MOSTLY, ALSO = 0.4, 0.2
# Entropy over that of an even spread, from which on attention counts as even.
EVEN = 0.9
# Correlation of the places looked at with the places looked from, of an alignment in order.
IN_ORDER = 0.9
# Patterns that are no place to look at.
NO_PLACE = ("no single pattern", "nothing to choose")


def head_sentence(layer, head, tokens):
    """Return the pattern of a head, in a few words, and a sentence that sums it up.

    Args:
        layer: a `tfnlp.inspection.LayerAttention`.
        head: its number, from 0.
        tokens: {name: list of strings}, which has the layer's rows and columns.
    """
    weights, visible = layer.weights[head], layer.visible[head]
    # A row that sees one token alone has no choice; one that sees none looks nowhere.
    rows = np.flatnonzero(visible.sum(-1) > 1)
    if not len(rows):
        return "nothing to choose", "Every token sees at most one, so there is nothing to choose."
    columns = tokens[layer.columns]
    if layer.rows == layer.columns:
        shares = _self_shares(weights, rows, columns)
    else:
        shares = _edge_shares(weights, rows, "token of the source")
    named = sorted(shares.items(), key=lambda item: -item[1])
    (first, share), *rest = named
    if share >= MOSTLY:
        also = [
            f" and {name} ({100 * x:.0f} %)" for name, x in rest[:1] if x >= ALSO and share < 0.75
        ]
        return first, f"It looks mostly at {first} ({100 * share:.0f} %){''.join(also)}."
    if layer.rows == layer.columns:
        near = sum(shares[name] for name in ("the previous token", "itself", "the next token"))
        if near >= 0.6:
            return (
                "its neighbours",
                f"It looks at itself and the tokens beside it ({100 * near:.0f} %).",
            )
    elif _order(weights, rows) >= IN_ORDER:
        return "the source in its order", "It follows the source in its order, a diagonal."
    if _evenness(weights, visible, rows) >= EVEN:
        return "all tokens evenly", "It looks at all tokens almost evenly."
    means = weights[rows].mean(0)
    token = int(means.argmax())
    if means[token] >= MOSTLY:
        return "one token", f"It looks mostly at “{columns[token]}” ({100 * means[token]:.0f} %)."
    edge = share == means[token]  # the first or the last token itself
    also = "" if edge else f" and to “{columns[token]}” ({100 * means[token]:.0f} %)"
    words = f"It has no single pattern; most goes to {first} ({100 * share:.0f} %){also}."
    return "no single pattern", words


def page_sentence(patterns):
    """Return a sentence that counts the patterns of all heads, a list of them."""
    if not patterns:
        return "The model has no attention; gradient times input shows what its answer rests on."
    counts = collections.Counter(patterns).most_common()
    parts = []
    for name, count in sorted(counts, key=lambda item: item[0] in NO_PLACE):
        look, have = ("looks mostly at", "has") if count == 1 else ("look mostly at", "have")
        parts.append(f"{count} {have if name in NO_PLACE else look} {name}")
    return f"Of {len(patterns)} heads, {', '.join(parts)}."


def _self_shares(weights, rows, tokens):
    """Return the mean attention of the rows to each kind of place."""
    last = weights.shape[1] - 1
    offset = weights.shape[1] - weights.shape[0]  # earlier tokens, of a memory
    alike = np.array(tokens)[:, None] == np.array(tokens)[None, :]
    np.fill_diagonal(alike, False)
    shares = {"the same token elsewhere": (weights * alike[offset:])[rows].sum() / len(rows)}
    shares |= {
        name: sum(weights[i, i + offset + step] for i in rows if 0 <= i + offset + step <= last)
        / len(rows)
        for name, step in (("the previous token", -1), ("itself", 0), ("the next token", 1))
    }
    return shares | _edge_shares(weights, rows, "token")


def _edge_shares(weights, rows, what):
    means = weights[rows].mean(0)
    return {f"the first {what}": means[0], f"the last {what}": means[-1]}


def _order(weights, rows):
    """Return the correlation of the rows with the mean place that each looks at."""
    places = weights[rows] @ np.arange(weights.shape[1]) / np.maximum(weights[rows].sum(-1), 1e-9)
    if len(rows) < 3 or np.std(places) < 1e-6:
        return 0.0
    return float(np.corrcoef(rows, places)[0, 1])


def _evenness(weights, visible, rows):
    p = np.where(weights[rows] > 0, weights[rows], 1)
    entropy = -(p * np.log(p)).sum(-1)
    return float((entropy / np.log(visible[rows].sum(-1))).mean())
