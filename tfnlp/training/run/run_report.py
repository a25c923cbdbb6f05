"""Reports of finished runs: scores, curves and a model card."""

import dataclasses
import datetime
import html
import math
import platform

import keras
import tensorflow as tf
from absl import logging

import tfnlp
from tfnlp.checkpoints import read_config
from tfnlp.plots import draw_curves, html_page, html_table, plot_curves, svg_of
from tfnlp.utils.files import write_json, write_text

BASELINE = (
    "A baseline has no model: it gives all examples their commonest label or labels, or their "
    "mean; of a search it is BM25."
)


@dataclasses.dataclass(frozen=True)
class TaskFacts:
    """Facts of a task and its data for a report.

    Args:
        labels: the class names, or None.
        examples: {"train": number of examples, ...}; None where the figures have them.
        mistakes: the rows of `tfnlp.tasks.mistakes`, for report.html alone, since the model card
            may be shared and they have texts.
        kept: which epoch is kept, and by which score; "" for the last.
    """

    labels: tuple | None = None
    examples: dict | None = None
    mistakes: tuple = ()
    kept: str = ""


def write_report(run, figures, metric="accuracy", epoch="best", facts=None):
    """Write a run's figures, its plot, its model card, and both as the page report.html.

    Args:
        run: the `RunFolder`.
        figures: a dict of numbers; `dev_baseline_accuracy` is shown beside `dev_accuracy`.
        metric: the metric that is plotted beside the loss; None for none.
        epoch: "best", or "last" for a training without a score to select by.
        facts: `TaskFacts`, or None.
    """
    if not run.writes:
        return
    write_json(run.path / "figures.json", figures)
    plot = plot_curves(run.metrics(), run.path / "curves.png", metric)
    facts = facts or TaskFacts()
    trained = {"epoch that is kept": facts.kept} if facts.kept else {}
    trained |= _training_facts(run, facts.examples or {})
    title, sections = (run.path.name, facts.labels), _sections(run, figures, trained)
    folder = f"best/ is a Hugging Face folder of the {epoch} epoch"
    write_text(run.path / "README.md", _model_card(*title, sections, folder, plot=plot))
    measured, *others = sections.items()
    mistakes = [("Worst mistakes on dev", facts.mistakes)] if facts.mistakes else []
    page = *title, dict([measured, *mistakes, *others]), folder
    write_text(run.path / "report.html", _report_page(*page, run.metrics(), metric))
    if run.best.exists():  # which has no plot, and may be shared alone
        write_text(run.best / "README.md", _model_card(*title, sections, folder, plot=False))
    if any("baseline_" in key for key in figures):
        logging.info("%s", BASELINE)
    for key, value in figures.items():
        logging.info("%s: %s", key, _text(value))
        if key.endswith("only_answer"):
            split = key.removesuffix("only_answer")[:-1].replace("_", " ")
            logging.warning(
                "All of %s gets one answer, %s, though the right ones differ.", split, _text(value)
            )
    logging.info(
        "The weights of the %s epoch%s are in %s, the model card is %s/README.md.",
        epoch,
        f" ({facts.kept})" if facts.kept else "",
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


def _figure_rows(figures):
    """Return the table of figures, with baselines beside their scores."""
    texts = {key: _text(value) for key, value in figures.items() if value is not None}
    if not any("baseline_" in key for key in figures):
        return _rows("figure", {key.replace("_", " "): value for key, value in texts.items()})
    rows = [["figure", "value", "baseline"]]
    baselines = {k.replace("baseline_", ""): v for k, v in texts.items() if "baseline_" in k}
    for key, value in texts.items():
        if "baseline_" not in key:
            rows.append([key.replace("_", " "), value, baselines.get(key, "")])
    return rows


def _rows(name, values):
    """Return a table of the values that are not None, its header first."""
    rows = [[key, str(value)] for key, value in values.items() if value is not None]
    return [[name, "value"], *rows]


def _sections(run, figures, facts):
    """Return the tables of a model card by title."""
    sections = {"Measured": _figure_rows(figures)}
    # From the weights: flags do not give the sizes of a model loaded from a folder.
    config = _model_facts(run)
    sections |= {"Model": _rows("field", config)} if config else {}
    return sections | {"Trained": _rows("fact", facts), "Made with": _rows("flag", run.flags)}


def _classes(labels):
    """Return the line of the class names; "" for none, and for the number of a regression."""
    return f"Classes: {', '.join(map(str, labels))}." if labels and len(labels) > 1 else ""


def _model_card(name, labels, sections, folder, plot):
    lines = [f"# {name}", ""]
    lines += [_classes(labels), ""] if _classes(labels) else []
    for title, (header, *rows) in sections.items():
        lines += [f"## {title}", "", f"| {' | '.join(header)} |", "| --- " * len(header) + "|"]
        lines += [*(f"| {' | '.join(row)} |" for row in rows), ""]
        lines += [BASELINE, ""] if "baseline" in header else []
        lines += ["![Loss and score by epoch](curves.png)", ""] if plot else []
        plot = False  # after the first table
    folder = folder.replace("best/", "`best/`")
    return "\n".join([*lines, f"{folder}; `metrics.jsonl` has every epoch.", ""])


def _report_page(name, labels, sections, folder, metrics, metric):
    """Return the model card as a page, with each epoch's numbers beside the curves."""
    parts = [f"<h1>{html.escape(name)}</h1>", f"<p>{html.escape(_classes(labels))}</p>"]
    for title, rows in sections.items():
        parts += [f"<h2>{title}</h2>", html_table(rows)]
        parts += [f"<p>{BASELINE}</p>"] if "baseline" in rows[0] else []
        if title == "Measured" and metrics:
            parts += ["<h2>Epochs</h2>", '<div class="beside">', _curves(metrics, metric)]
            parts += [html_table(_epoch_rows(metrics)), "</div>"]
    parts.append(f"<p>{html.escape(folder)}; metrics.jsonl has every epoch.</p>")
    return html_page(name, "\n".join(parts))


def _curves(metrics, metric):
    """Return the curves as an SVG; "" without matplotlib, which `plot_curves` has told."""
    try:
        svg = svg_of(draw_curves(metrics, metric), "Loss and score by epoch; the table has them")
        return f'<figure class="plot">{svg}</figure>'
    except ImportError:
        return ""


def _cell(value):
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _epoch_rows(metrics):
    """Return a table of the losses and scores of each epoch."""
    names = dict.fromkeys(key for m in metrics for key in m)
    names = [name for name in names if name not in ("epoch", "time", "seconds")]
    rows = ([_cell(m.get(name)) for name in names] for m in metrics)
    header = ["epoch", *(name.replace("val_", "dev ").replace("_", " ") for name in names)]
    return [header, *([str(m["epoch"]), *row] for m, row in zip(metrics, rows, strict=True))]
