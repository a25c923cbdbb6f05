"""Predictions for a list of examples: made, printed, written and scored."""

import pathlib
import sys

from tqdm import tqdm

from tfnlp.files import replaced_when_whole


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
    bar = tqdm(encodings, unit="text", disable=few, dynamic_ncols=True)
    return [classifier.classify_encoding(encoding) for encoding in bar]


def print_predictions(examples, predictions):
    """Prints label, probability and text of each example, then the summary."""
    for line in _lines(examples, predictions):
        print(line)
    _summarise(examples, predictions)


def write_predictions(folder, examples, predictions):
    """Writes predictions.tsv (label, probability, text), whole or not at all; prints a summary."""
    path = pathlib.Path(folder) / "predictions.tsv"
    lines = ["label\tprobability\tsentence", *_lines(examples, predictions)]
    with replaced_when_whole(path) as temporary:
        pathlib.Path(temporary).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"Wrote {path}.", file=sys.stderr)
    _summarise(examples, predictions)


def _lines(examples, predictions):
    for text, p in zip(examples.texts, predictions, strict=True):
        shown = " ".join(text.split())
        yield f"{p.label}\t{p.probabilities[p.label]:.4f}\t{shown}"


def _summarise(examples, predictions):
    """To standard error, so that the predictions can be piped on."""
    cut = sum(p.cut for p in predictions)
    if cut:
        print(
            f"{cut} of {len(predictions)} texts were longer than the model reads.", file=sys.stderr
        )
    if examples.labels:
        names = [examples.label_names[i] for i in examples.labels]
        right = sum(p.label == name for p, name in zip(predictions, names, strict=True))
        print(f"accuracy {right / len(names):.4f} on {len(names)} texts", file=sys.stderr)
