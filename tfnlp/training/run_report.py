"""Reports of finished runs: scores, curves and a model card."""

import dataclasses
import datetime
import math
import platform

import keras
import tensorflow as tf
from absl import logging

import tfnlp
from tfnlp.checkpoints import read_config
from tfnlp.plots import plot_curves
from tfnlp.utils.files import write_json, write_text

BASELINE = "The baseline gives all examples their commonest label, or their mean number."


def write_report(run, figures, labels=None, metric="accuracy", epoch="best", examples=None):
    """Write a run's figures, its plot and its model card.

    Args:
        run: the `RunFolder`.
        figures: a dict of numbers; `dev_baseline_accuracy` is shown beside `dev_accuracy`.
        labels: the class names, or None.
        metric: the metric that is plotted beside the loss.
        epoch: "best", or "last" for a training without a score to select by.
        examples: {"train": number of examples, ...}; None where the figures have them.
    """
    if not run.writes:
        return
    write_json(run.path / "figures.json", figures)
    plot = plot_curves(run.metrics(), run.path / "curves.png", metric)
    facts = _training_facts(run, examples or {})
    card = (run, labels, figures, facts, epoch)
    write_text(run.path / "README.md", _model_card(*card, plot=plot))
    if run.best.exists():  # which has no plot, and may be shared alone
        write_text(run.best / "README.md", _model_card(*card, plot=False))
    for key, value in figures.items():
        logging.info("%s: %s", key, _text(value))
        if key.endswith("_only_answer"):
            split = key.removesuffix("_only_answer").replace("_", " ")
            logging.warning(
                "All of %s gets one answer, %s, though the right ones differ.", split, _text(value)
            )
    logging.info(
        "The %s epoch's weights are in %s, the model card is %s/README.md.",
        epoch,
        run.best,
        run.path,
    )


def _text(value):
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return "no finite number"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}"


def _model_facts(run):
    """Return the family and config of the kept weights as a dict; empty if there are none."""
    if not (run.best / "config.json").exists():
        return {}
    config = read_config(run.best)
    return {"family": config.model_type} | dataclasses.asdict(config)


def _training_facts(run, examples):
    """Return the numbers of examples, the duration, the end time and the package versions."""
    epochs = run.metrics()
    facts = {f"{name} examples": f"{count:,}" for name, count in examples.items()}
    if epochs:
        facts["seconds of training"] = f"{sum(m.get('seconds', 0) for m in epochs):,.0f}"
        ended = datetime.datetime.fromtimestamp(epochs[-1]["time"], datetime.UTC)
        facts["end of training"] = f"{ended:%Y-%m-%d %H:%M} UTC"
    versions = {
        "tfnlp": tfnlp.__version__,
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
        "python": platform.python_version(),
    }
    return facts | versions


def _figure_lines(figures):
    """Return the lines of the table of figures, with baselines beside their scores."""
    texts = {key: _text(value) for key, value in figures.items() if value is not None}
    if not any("_baseline_" in key for key in figures):
        return _table("figure", {key.replace("_", " "): value for key, value in texts.items()})
    lines = ["| figure | value | baseline |", "| --- | --- | --- |"]
    baselines = {k.replace("_baseline_", "_"): v for k, v in texts.items() if "_baseline_" in k}
    for key, value in texts.items():
        if "_baseline_" not in key:
            baseline = baselines.get(key, "")
            lines.append(f"| {key.replace('_', ' ')} | {value} | {baseline} |")
    return [*lines, "", BASELINE]


def _table(name, values):
    """Return the lines of a table of the values that are not None."""
    rows = [f"| {key} | {value} |" for key, value in values.items() if value is not None]
    return [f"| {name} | value |", "| --- | --- |", *rows]


def _model_card(run, labels, figures, facts, epoch, plot):
    lines = [f"# {run.path.name}", ""]
    if labels and len(labels) > 1:  # not the number of a regression
        lines += [f"Classes: {', '.join(map(str, labels))}.", ""]
    lines += ["## Measured", "", *_figure_lines(figures)]
    if plot:
        lines += ["", "![Loss and score by epoch](curves.png)"]
    # From the weights: flags do not give the sizes of a model loaded from a folder.
    config = _model_facts(run)
    lines += ["", "## Model", "", *_table("field", config)] if config else []
    lines += ["", "## Trained", "", *_table("fact", facts)]
    lines += ["", "## Made with", "", *_table("flag", run.flags)]
    folder = f"`best/` is a Hugging Face folder of the {epoch} epoch"
    lines += ["", f"{folder}; `metrics.jsonl` has every epoch.", ""]
    return "\n".join(lines)
