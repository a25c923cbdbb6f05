"""Summary of a training's examples: labels, texts in common, and what is probably a slip."""

import re
import unicodedata

from tfnlp.text.reading.readers import as_number
from tfnlp.utils.formatting import counted

# Fields of examples that hold texts, of all tasks.
TEXT_FIELDS = ("texts", "pairs", "sentences", "questions", "contexts", "prompts", "endings")
TEXT_FIELDS += ("sources", "targets")
# Labels that a summary shows, the commonest first.
SHOWN_LABELS = 10
# The share of a split's examples in train from which its scores say little.
MUCH_SHARED = 0.1


def summarise(task, splits):
    """Summarise the data of a training.

    Args:
        task: see `tfnlp.tasks`; None for one without labels.
        splits: {name: examples}, with "train" among them.

    Returns:
        A line of the counts of examples and labels, and of the examples that train has too; and a
        list of sentences, of what is probably a slip.
    """
    shared, parts = shared_examples(splits), []
    doubts = doubtful_labels((task and task.label_names) or [])
    for name, examples in splits.items():
        number, count = len(examples), shared.get(name, 0)
        labels = _label_text(task and task.label_counts(examples))
        part = f"{name}: {counted(number, 'example')}{labels}"
        parts.append(f"{part}, {count:,} of them in train" if count else part)
        if count > MUCH_SHARED * number:
            doubts.append(
                f"{count:,} of the {number:,} examples of `{name}` are in `train` too, so that "
                "its scores say little of new texts; leave them out of one."
            )
    return "; ".join(parts), doubts


def shared_examples(splits):
    """Return {name: number of examples whose texts train has too} of the other splits."""
    train = {*_rows(splits["train"])}
    others = {name: examples for name, examples in splits.items() if name != "train"}
    return {name: sum(row in train for row in _rows(rows)) for name, rows in others.items()}


def doubtful_labels(names):
    """Return a sentence for each kind of labels that are probably no classes of their own."""
    names, sentences, alike = [str(name) for name in names], [], {}
    for name in names:
        plain = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
        alike.setdefault(plain, []).append(name)
    for spellings in alike.values():
        if len(spellings) > 1:
            same = " and ".join(map(repr, spellings))
            sentences.append(
                f"{same} are different labels here; if they are one, write them alike."
            )
    if fractions := [name for name in names if _is_fraction(name)]:
        sentences.append(
            f"Each number is a label of its own here, such as {fractions[0]}; numbers are learned "
            "by finetune_regression, probabilities by `label_columns`."
        )
    for name in names:
        parts = [part.strip() for part in re.split(r"[|;,]", name)]
        if len(parts) > 1 and ("|" in name or {*parts} & {*names}):
            sentences.append(
                f"{name!r} is one label here; if it is several, give `multi_label`, and "
                "`label_separator` for what parts them."
            )
            break
    return sentences


def _is_fraction(name):
    try:
        return 0 < as_number(name) % 1 < 1
    except ValueError:
        return False


def _label_text(counts):
    """Return " (pos 30, neg 20)" of {label: count}, the range of numbers, or "" without any."""
    if not counts:
        return ""
    if all(isinstance(label, float) for label in counts):
        return f" ({min(counts):g} to {max(counts):g})"
    ranked = sorted(counts.items(), key=lambda each: -each[1])
    shown = [f"{label} {count:,}" for label, count in ranked[:SHOWN_LABELS]]
    if rest := ranked[SHOWN_LABELS:]:
        shown.append(f"and {counted(len(rest), 'further label')}")
    return f" ({', '.join(shown)})"


def _rows(examples):
    """Return a hash of each example's texts."""
    columns = [getattr(examples, name, None) for name in TEXT_FIELDS]
    return [hash(str(row)) for row in zip(*filter(None, columns), strict=True)]
