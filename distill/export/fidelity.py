"""Comparison of an exported file with its Keras model on real texts."""

import contextlib
import itertools
import pathlib

import numpy as np
from absl import logging

from distill.reports.predictions import answers_of, predict_inputs
from distill.runtime.associated_files import read_files
from tfnlp.pipelines.keras_runners import CLASSES, ModelEmbedder
from tfnlp.quantization.fake_quantization import in_float

# Below these means the file differs too much from the evaluated model.
LEAST_AGREEMENT = 0.98
LEAST_COSINE = 0.99
LEAST_CORRELATION = 0.99
# Names of the compared answers, by the kind of model.
NAMES = {"classifier": "label", "tagger": "tag", "answerer": "answer", "chooser": "choice"}


@contextlib.contextmanager
def keras_runner(model, kind, tokenizer, **options):
    """Yield a runner of a Keras model in float32, as the reference for a file.

    Args:
        model: from `tfnlp.models`.
        kind: of the file, one of `distill.export.tflite.OUTPUTS`.
        tokenizer: the model's.
        options: `labels`, `settings` and `max_length` as `ModelRunner` takes them, and `pooling`.
    """
    pooling = options.pop("pooling", None)
    with in_float(model):
        if kind == "embedder":
            yield ModelEmbedder(model, tokenizer, pooling, **options)
        else:
            yield CLASSES[kind](model, tokenizer, **options)


def compare(runner, reference, inputs):
    """Compare the predictions of two runners of one kind on the same inputs.

    Args:
        runner: of the file, from `distill.runtime`.
        reference: the runner of the Keras model.
        inputs: `distill.reports.predictions.Inputs`.

    Returns:
        A dict of `texts`, the number of texts, and

        - for a classifier, tagger, answerer or chooser `agreement`, the share of equal labels
          (tags of words, answers to questions);
        - for a scorer `correlation` (Pearson), None if a side is constant, and
          `largest_difference`;
        - for an embedder `cosine`, the mean, and `least_cosine`, of the worst text.
    """
    predictions, expected = (predict_inputs(side, inputs) for side in (runner, reference))
    return {"texts": len(inputs.texts)} | compare_answers(reference.kind, predictions, expected)


def compare_answers(kind, predictions, expected):
    """Compute the figures of `compare`, without `texts`, from two lists of predictions."""
    sides = [answers_of(kind, side) for side in (predictions, expected)]
    if kind == "embedder":
        cosines = np.prod(sides, axis=0).sum(1)
        return {"cosine": float(cosines.mean()), "least_cosine": float(cosines.min())}
    if kind == "scorer":
        constant = min(np.ptp(sides, axis=1)) == 0
        return {
            "correlation": None if constant else float(np.corrcoef(*sides)[0, 1]),
            "largest_difference": float(np.abs(np.subtract(*sides)).max()),
        }
    if kind == "tagger":
        sides = [itertools.chain(*side) for side in sides]
    return {"agreement": float(np.mean([a == b for a, b in zip(*sides, strict=True)] or [1.0]))}


def describe(kind, figures):
    """Return a sentence on figures of `compare`, for the model card, the metadata and the log."""
    texts = f"On {figures['texts']} texts, compared with float32 Keras:"
    if kind == "embedder":
        return (
            f"{texts} cosine {figures['cosine']:.4f} in the mean, {figures['least_cosine']:.4f} "
            "at worst."
        )
    if kind == "scorer":
        correlation = figures["correlation"]
        sentence = "no correlation, as one number is given for all texts"
        if correlation is not None:
            sentence = f"correlation {correlation:.4f}"
        difference = figures["largest_difference"]
        return f"{texts} {sentence}; the largest difference is {difference:.4g}."
    return f"{texts} the same {NAMES[kind]} in {figures['agreement']:.2%}."


def warn(kind, figures, quantization):
    """Log a warning if a file loses much accuracy, with the figures and better quantizations."""
    least = {"embedder": ("cosine", LEAST_COSINE), "scorer": ("correlation", LEAST_CORRELATION)}
    name, bound = least.get(kind, ("agreement", LEAST_AGREEMENT))
    if figures[name] is None or figures[name] < bound:
        smaller = quantization not in ("float32", "float16", "int8")
        remedy = "; int8 or float16 lose less" if smaller else ""
        logging.warning(
            "The file of quantization=%r loses much: %s A mean %s below %.2f is warned of%s.",
            quantization,
            describe(kind, figures),
            name,
            bound,
            remedy,
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
