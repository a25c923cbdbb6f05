"""Predictions for a list of examples: made, printed, written and scored."""

import pathlib
import sys

from tfnlp.files import write_json, write_text
from tfnlp.progress import progress_bar


def classify_examples(classifier, examples):
    """Classifies every example, with a progress bar where there are many.

    Args:
        classifier: a `distill.runtime.TextClassifier`.
        examples: `tfnlp.text.Examples`.

    Returns:
        A list of `Classification`.
    """
    encodings = classifier.tokenizer.encode(
        examples.texts, examples.pairs, max_length=classifier.max_length
    )
    few = len(encodings) < 200
    bar = progress_bar(encodings, unit="text", disable=few)
    return [classifier.classify_encoding(encoding) for encoding in bar]


def print_predictions(examples, predictions):
    """Prints label, probability and text of each example, then the summary."""
    for line in _lines(examples, predictions):
        print(line)
    _print_summary(summarise(examples, predictions))


def write_predictions(folder, examples, predictions):
    """Writes predictions.tsv (label, probability, text) and summary.json; prints the summary."""
    folder = pathlib.Path(folder)
    lines = ["label\tprobability\tsentence", *_lines(examples, predictions)]
    write_text(folder / "predictions.tsv", "\n".join(lines) + "\n")
    summary = summarise(examples, predictions)
    write_json(folder / "summary.json", summary)
    print(f"Wrote {folder / 'predictions.tsv'}.", file=sys.stderr)
    _print_summary(summary)


def summarise(examples, predictions):
    """A dict of `texts`, `cut` (those longer than is read) and, with labels, `accuracy`."""
    summary = {"texts": len(predictions), "cut": sum(p.cut for p in predictions)}
    if examples.labels:
        names = [examples.label_names[i] for i in examples.labels]
        right = sum(p.label == name for p, name in zip(predictions, names, strict=True))
        summary["accuracy"] = right / len(names)
    return summary


def _print_summary(summary):
    """To standard error, so that the predictions can be piped on."""
    texts = summary["texts"]
    if summary["cut"]:
        print(f"{summary['cut']} of {texts} texts were longer than is read.", file=sys.stderr)
    if "accuracy" in summary:
        print(f"accuracy {summary['accuracy']:.4f} on {texts} texts", file=sys.stderr)


def _lines(examples, predictions):
    for text, p in zip(examples.texts, predictions, strict=True):
        shown = " ".join(text.split())
        yield f"{p.label}\t{p.probabilities[p.label]:.4f}\t{shown}"
