"""Predictions of a pipeline for many texts of any task: summary, printed lines and files."""

import pathlib
import sys

from tfnlp.pipelines.prediction_tasks import task_of
from tfnlp.tasks.confusion_matrix import confusion_table
from tfnlp.utils.files import json_text, write_json, write_text
from tfnlp.utils.formatting import aligned, one_line


def predict_inputs(pipeline, inputs):
    """Return a pipeline's prediction for each of the inputs, a list.

    Returns:
        For a classifier `Classification`s, for a scorer floats, for a tagger `TaggedText`s, for an
        answerer the best `Answer`s, for a chooser `Choice`s, for an embedder vectors (D,).
    """
    return pipeline.predict(inputs.texts, inputs.second_texts)


def summarise(pipeline, inputs, predictions, task=None):
    """Summarise the predictions of `predict_inputs` by a `PredictionTask`, the pipeline's if None.

    Returns:
        A dict of `texts`, `cut` (the number of truncated texts), and the result of
        `PredictionTask.score` if the inputs have gold labels.
    """
    task = task or task_of(pipeline)
    cut = task.count_truncated(pipeline, inputs, predictions)
    scores = task.score(inputs, predictions) if inputs.gold else {}
    return {"texts": len(predictions), "cut": cut} | scores


def print_predictions(pipeline, inputs, predictions, task=None):
    """Print a line for each prediction, after a header if it has all probabilities; a summary."""
    task = task or task_of(pipeline)
    if task.probabilities:
        print("\t".join(_header(task, inputs)))
    for row in _rows(task, inputs, predictions):
        print("\t".join(row))
    summary = summarise(pipeline, inputs, predictions, task)
    print_summary(summary, pipeline.max_length)


def write_predictions(folder, pipeline, inputs, predictions, task=None):
    """Write predictions.tsv, or .jsonl for a tagger or answerer, and summary.json.

    Gold labels stand beside predictions if they are known. The summary is printed too.
    """
    folder, task = pathlib.Path(folder), task or task_of(pipeline)
    path = folder / f"predictions{task.suffix}"
    write_lines(path, task, inputs, predictions)
    summary = summarise(pipeline, inputs, predictions, task)
    write_json(folder / "summary.json", summary)
    print(f"Wrote {path}.", file=sys.stderr)
    print_summary(summary, pipeline.max_length)


def write_lines(path, task, inputs, predictions):
    """Write the predictions of a `PredictionTask` to a file, with its header if it has one."""
    if task.header is None:
        values = [task.json_value(inputs, *numbered) for numbered in enumerate(predictions)]
        lines = [json_text(value) for value in values]
    else:
        rows = [_header(task, inputs), *_rows(task, inputs, predictions)]
        lines = ["\t".join(row) for row in rows]
    write_text(path, "".join(f"{line}\n" for line in lines))


def _header(task, inputs):
    answer, *others = task.header
    gold = ["gold"] if inputs.gold else []
    second = [] if inputs.second_texts is None else [task.second_column]
    return [answer, *gold, *others, *second]


def _rows(task, inputs, predictions):
    """Yield the columns of each printed line, without tabs and line breaks in them."""
    for i, (text, prediction) in enumerate(zip(inputs.texts, predictions, strict=True)):
        second_text = [] if inputs.second_texts is None else [inputs.second_texts[i]]
        row = task.row(prediction, text, *second_text)
        if inputs.gold and task.header:
            row.insert(1, task.gold_text(inputs.gold[i]))
        yield [one_line(column) for column in row]


def print_summary(summary, max_length):
    """Print a summary to standard error, so that the predictions can be piped."""
    texts = summary["texts"]
    if summary["cut"]:
        cut = f"{summary['cut']} of {texts} texts were longer than the {max_length}"
        print(f"{cut} tokens that are read of each.", file=sys.stderr)
    other = ("texts", "cut", "confusion", "only_answer", "by_label")
    for name, value in summary.items():
        if name not in other and not name.startswith("baseline_"):
            baseline = summary.get(f"baseline_{name}")
            beside = "" if baseline is None else f" (baseline {baseline:.4f})"
            print(f"{name} {value:.4f} on {texts} texts{beside}", file=sys.stderr)
    if "only_answer" in summary:
        answer = summary["only_answer"]
        print(f"All texts get one answer, {answer}, though the gold ones differ.", file=sys.stderr)
    if "confusion" in summary:
        print(*confusion_table(summary["confusion"]), sep="\n", file=sys.stderr)
    if "by_label" in summary:
        lines = aligned(_label_rows(summary["by_label"]), str.rjust)
        print(*lines, sep="\n", file=sys.stderr)


def _label_rows(by_label):
    """Return the scores of each label as rows of strings, with a header row."""
    rows = [["label", "precision", "recall", "f1", "texts"]]
    for label, scores in by_label.items():
        shares = (f"{scores[name]:.4f}" for name in rows[0][1:-1])
        rows.append([label, *shares, str(scores["texts"])])
    return rows
