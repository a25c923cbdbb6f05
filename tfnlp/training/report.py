"""What a finished run says of itself: scores, curves and a model card."""

import dataclasses
import math

import numpy as np
from absl import logging

from tfnlp.checkpoints import read_config
from tfnlp.checkpoints.folder import family_of
from tfnlp.files import write_json
from tfnlp.plots import plot_curves
from tfnlp.training.predict import predict_batches


def predict_logits(model, batches):
    """The logits of every example, (examples, C), in the examples' own order."""
    return np.stack(predict_batches(model, batches)["logits"])


def accuracy(model, batches):
    """The share of examples whose most probable class is the label."""
    return float(np.mean(predict_logits(model, batches).argmax(1) == batches.labels))


def write_report(run, figures, labels=None, metric="accuracy", epoch="best"):
    """Writes a run's figures, its plot and its model card.

    Args:
        run: the `RunFolder`.
        figures: a dict of numbers.
        labels: the class names, or None.
        metric: what is plotted beside the loss.
        epoch: "best", or "last" of a training that has no score to choose by.
    """
    if not run.writes:
        return
    write_json(run.path / "figures.json", figures)
    plot = plot_curves(run.metrics(), run.path / "curves.png", metric)
    run.write_model_card(_model_card(run, labels, figures, plot, epoch))
    for key, value in figures.items():
        logging.info("%s: %s", key, _shown(value))
    where = run.best, run.path
    logging.info(
        "The %s epoch's weights are in %s, the model card is %s/README.md.", epoch, *where
    )


def _shown(value):
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return "no finite number"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}"


def _facts(run):
    """The family and the config of the kept weights, a dict; empty where there are none."""
    if not (run.best / "config.json").exists():
        return {}
    config = read_config(run.best)
    return {"family": family_of(config).model_type} | dataclasses.asdict(config)


def _table(name, values):
    """The lines of a table of the values that are there."""
    rows = [f"| {key} | {value} |" for key, value in values.items() if value is not None]
    return [f"| {name} | value |", "| --- | --- |", *rows]


def _model_card(run, labels, figures, plot, epoch):
    lines = [f"# {run.path.name}", ""]
    if labels:
        lines += [f"Classes: {', '.join(map(str, labels))}.", ""]
    shown = {key.replace("_", " "): _shown(value) for key, value in figures.items()}
    lines += ["## Measured", "", *_table("figure", shown)]
    if plot:
        lines += ["", "![Loss and score by epoch](curves.png)"]
    # Of the weights themselves: a model of a folder is not of the sizes that flags could give.
    facts = _facts(run)
    lines += ["", "## Model", "", *_table("field", facts)] if facts else []
    lines += ["", "## Made with", "", *_table("flag", run.flags)]
    folder = f"`best/` is a Hugging Face folder of the {epoch} epoch"
    lines += ["", f"{folder}; `metrics.jsonl` has every epoch.", ""]
    return "\n".join(lines)
