"""What a finished run says of itself: scores, curves and a model card."""

import math

import numpy as np
from absl import logging

from tfnlp.files import write_json
from tfnlp.plots import plot_curves
from tfnlp.training.predict import predict_batches


def predict_logits(model, batches):
    """The logits of every example, (examples, C), in the examples' own order."""
    return np.stack(predict_batches(model, batches)["logits"])


def accuracy(model, batches):
    """The share of examples whose most probable class is the label."""
    return float(np.mean(predict_logits(model, batches).argmax(1) == batches.labels))


def write_report(run, figures, labels=None, metric="accuracy"):
    """Writes a run's figures, its plot and its model card.

    Args:
        run: the `RunFolder`.
        figures: a dict of numbers.
        labels: the class names, or None.
        metric: what is plotted beside the loss.
    """
    write_json(run.path / "figures.json", figures)
    plot = plot_curves(run.metrics(), run.path / "curves.png", metric)
    run.write_model_card(_model_card(run, labels, figures, plot))
    for key, value in figures.items():
        logging.info("%s: %s", key, _shown(value))
    logging.info("The best weights are in %s, the model card is %s/README.md.", run.best, run.path)


def _shown(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "no finite number"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}"


def _model_card(run, labels, figures, plot):
    lines = [f"# {run.path.name}", ""]
    if labels:
        lines += [f"Classes: {', '.join(map(str, labels))}.", ""]
    lines += ["## Measured", "", "| figure | value |", "| --- | --- |"]
    for key, value in figures.items():
        lines.append(f"| {key.replace('_', ' ')} | {_shown(value)} |")
    if plot:
        lines += ["", "![Loss and score by epoch](curves.png)"]
    lines += ["", "## Made with", "", "| flag | value |", "| --- | --- |"]
    lines += [f"| {key} | {value} |" for key, value in run.flags.items() if value is not None]
    lines += ["", "`best/` is a Hugging Face folder; `metrics.jsonl` has every epoch.", ""]
    return "\n".join(lines)
