"""Comparison of an exported file with its Keras model on real texts."""

import contextlib
import pathlib

from absl import logging

from distill.runtime.associated_files import read_files
from tfnlp.pipelines import KerasBackend, pipeline_of
from tfnlp.pipelines.prediction_tasks import prediction_task, task_of
from tfnlp.pipelines.predictions import predict_inputs
from tfnlp.quantization.fake_quantization import in_float


@contextlib.contextmanager
def float_reference(model, tokenizer, **options):
    """Yield the pipeline of a Keras model in float32, as the reference for a file.

    Args:
        model, tokenizer, options: as in `tfnlp.pipelines.KerasBackend`.
    """
    with in_float(model):
        yield pipeline_of(KerasBackend(model, tokenizer, **options))


def compare(pipeline, reference, inputs):
    """Compare the predictions of two pipelines of one kind on the same inputs.

    Args:
        pipeline: of the file, from `distill.runtime`.
        reference: the pipeline of the Keras model.
        inputs: `tfnlp.pipelines.Inputs`.

    Returns:
        A dict of `texts`, the number of texts, and the figures of `PredictionTask.compare`.
    """
    task = task_of(reference)
    answers = [task.answers(predict_inputs(side, inputs)) for side in (pipeline, reference)]
    return {"texts": len(inputs.texts)} | task.compare(*answers)


def describe(kind, figures):
    """Return a sentence on figures of `compare`, for the model card, the metadata and the log."""
    texts = f"On {figures['texts']} texts, compared with float32 Keras:"
    return f"{texts} {prediction_task(kind).describe(figures)}"


def warn(kind, figures, quantization):
    """Log a warning if a file loses much accuracy, with the figures and better quantizations."""
    task = prediction_task(kind)
    value = figures[task.figure]
    if value is None or value < task.least:
        smaller = quantization not in ("float32", "float16", "int8")
        hint = " int8 or float16 lose less." if smaller else ""
        logging.warning(
            "The file of quantization=%r loses much, as its mean %s is below %.2f: %s",
            quantization,
            task.figure,
            task.least,
            describe(kind, figures) + hint,
        )


def file_card(path, facts, differences=()):
    """Return the model card of a file, as Markdown.

    Args:
        path: of the .tflite file.
        facts: {name: value} beside what the file itself holds; None is left out.
        differences: sentences on differences in other runtimes.
    """
    path, (settings, _) = pathlib.Path(path), read_files(path)
    task = settings.get("task", {})
    facts = facts | {
        "kind": settings["kind"],
        "reads": "pairs of texts" if task.get("pairs") else "single texts",
        "most tokens": settings["model_max_length"],
        "size": f"{path.stat().st_size / 1e6:.2f} MB",
    }
    rows = [f"| {name} | {value} |" for name, value in facts.items() if value is not None]
    check = settings.get("check")
    measured = "Not compared with the Keras model: no texts were given."
    if check:
        measured = describe(settings["kind"], check)
    lines = [f"# {path.name}", "", "| field | value |", "| --- | --- |", *rows, ""]
    lines += ["## Compared with the model", "", measured, ""]
    if differences:
        lines += ["## In other runtimes", "", *(f"- {sentence}" for sentence in differences), ""]
    return "\n".join(lines)
