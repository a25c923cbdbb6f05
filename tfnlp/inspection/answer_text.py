"""Answer of a model to a text, in words, as the page of its attention has it."""

import collections

import numpy as np

from tfnlp.functional.links import LINKS
from tfnlp.tasks.kinds import TASK_HEADS, kind_of

# Labels of a text that are named, and tokens with a tag of their own.
SHOWN_LABELS, SHOWN_TOKENS = 3, 10


def answer_text(model, outputs, labels, tokens):
    """Return a model's answer to one text with its probabilities; "" for heads without answers.

    Args:
        model: with any head.
        outputs: of the text alone; the head's `logits` (1, ..., C), or the two of an answerer.
        labels: names of the C classes; their numbers if None.
        tokens: of the text, a list of strings.
    """
    kind = kind_of(model) if model.head in TASK_HEADS else None
    if kind is None or not (kind.labelled or kind.link in ("identity", "positions")):
        return ""
    logits = (np.asarray(outputs[name][0], "float32") for name in kind.reads)
    first, *last = (np.asarray(LINKS[kind.link].probability(x)) for x in logits)
    if last:
        names = [f"“{token}”" for token in tokens]
        return f"from {_ranked(first, names, 1)} to {_ranked(*last, names, 1)}"
    if kind.link == "identity":
        return f"{first.item():.2f}"
    names = labels or [f"label {number}" for number in range(first.shape[-1])]
    return _tags(first, names, tokens) if kind.by_token else _ranked(first, names, SHOWN_LABELS)


def _tags(answers, names, tokens):
    """Return the tokens with another tag than most, or the tag of all."""
    best = answers.argmax(-1)
    ((commonest, _),) = collections.Counter(best.tolist()).most_common(1)
    others = [i for i, tag in enumerate(best) if tag != commonest]
    parts = [f"“{tokens[i]}” {_ranked(answers[i], names, 1)}" for i in others[:SHOWN_TOKENS]]
    parts += [f"and {len(others) - SHOWN_TOKENS} more"] * (len(others) > SHOWN_TOKENS)
    rest = "all other tokens" if others else "all tokens"
    return ", ".join([*parts, f"{rest} {names[commonest]}"])


def _ranked(answers, names, count):
    order = np.argsort(-answers, kind="stable")[:count]
    return ", ".join(f"{names[i]} ({100 * answers[i]:.1f} %)" for i in order)
