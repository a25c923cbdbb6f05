"""Comparison of exported files by score, size and latency, as a table and one HTML page."""

import dataclasses
import hashlib
import html
import pathlib
import re

from absl import logging

from distill.reports.latency import benchmark_file
from distill.runtime import load_runner
from tfnlp.pipelines.prediction_tasks import task_of
from tfnlp.pipelines.predictions import predict_inputs
from tfnlp.plots import html_page, html_table, svg_of
from tfnlp.tasks.confusion_matrix import matrix_rows
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import json_text, read_json, write_json
from tfnlp.utils.seed_statistics import Estimate

LENGTH = 32  # tokens at which files are compared
_SEED = re.compile(r"seed_\d+")
# Horizontal axes: a title, and a function of a candidate.
COSTS = {
    "size": ("size (MB)", lambda c: c.size_mb),
    "latency": (f"one thread, {LENGTH} tokens (ms)", lambda c: c.latency_ms),
}


@dataclasses.dataclass
class Candidate:
    """File to compare, or the files of a variant's seeds.

    Args:
        name: shown in tables and plots.
        paths: of its files; the first is timed, all are scored.
        score: `Estimate` over the files.
        agreement: `Estimate` of the agreement with the reference, the main `figure` of
            `PredictionTask.compare`; or None.
        figures: of `benchmark_file`.
        baseline: the score of the commonest label, or of the mean, of the inputs; or None.
        counts: the `confusion` and `only_answer` of the first file, as returned by `score`.
    """

    name: str
    paths: list
    score: Estimate | None = None
    agreement: Estimate | None = None
    figures: dict = dataclasses.field(default_factory=dict)
    baseline: float | None = None
    counts: dict = dataclasses.field(default_factory=dict)

    @property
    def size_mb(self):
        return self.figures["size_mb"]

    @property
    def latency_ms(self):
        """Warm latency on one thread at `LENGTH` tokens; None for a file that takes fewer."""
        return self.figures["latency_ms"]["1"].get(str(LENGTH))


def find_candidates(folder):
    """Return the files of a sweep's runs, as `Candidate`s in the order of their paths.

    Args:
        folder: of `recipes.sweep`, with files at VARIANT/seed_N/STEP/NAME.tflite.

    Raises:
        InputError: if there is none.
    """
    paths = {}
    for path in sorted(pathlib.Path(folder).glob("*/seed_*/*/*.tflite")):
        variant, seed, step, _ = path.relative_to(folder).parts
        if _SEED.fullmatch(seed):
            paths.setdefault((variant, step, path.stem), []).append(path)
    if not paths:
        raise InputError(
            f"{folder} holds no VARIANT/seed_N/STEP/*.tflite; give the folder of a sweep whose "
            "steps end in export_tflite."
        )
    variants = [variant for variant, _, _ in paths]
    names = [key[0] if variants.count(key[0]) == 1 else "/".join(key) for key in paths]
    return [Candidate(n, group) for n, group in zip(names, paths.values(), strict=True)]


def name_candidates(paths):
    """Return `Candidate`s of files, named by the parts in which their paths differ."""
    parts = [pathlib.Path(path).with_suffix("").parts for path in paths]
    shortest = min(map(len, parts))
    ends = [[p[-1 - i] for p in parts] for i in range(shortest)]
    kept = [i for i, names in enumerate(ends) if len(set(names)) > 1] or [0]
    names = ["/".join(p[-1 - i] for i in reversed(kept)) for p in parts]
    if len({*names}) < len(names):  # such as a.tflite and b/a.tflite
        names = [*map(str, paths)]
    return [Candidate(n, [pathlib.Path(p)]) for n, p in zip(names, paths, strict=True)]


def measure_candidates(
    candidates, read_inputs, cache, reference=None, repeats=50, positive_label=None
):
    """Score and time files, and fill in their figures.

    Args:
        candidates: a list of `Candidate`.
        read_inputs: a function from a pipeline to the `Inputs` that it is scored on.
        cache: path of a JSON file with measurements, written as files are measured; a file of the
            same content is not measured again.
        reference: a pipeline whose answers are compared, or None.
        repeats: timed runs for each figure.
        positive_label: for classifiers, the class whose F1 is the score; None for none.

    Returns:
        The name of the score: the first that the task reports, or "f1".

    Raises:
        InputError: if a file cannot be run, the inputs have no labels, or the reference or a
            file is of another task.
    """
    cached, expected, metric = _Cache(cache), None, None
    for number, candidate in enumerate(candidates, 1):
        logging.info("[%d/%d] %s", number, len(candidates), candidate.name)
        first, scores = candidate.paths[0], []
        candidate.figures = cached(benchmark_file, first, repeats=repeats)
        for path in candidate.paths:
            pipeline = load_runner(path, num_threads=2)
            task = task_of(pipeline, positive_label)
            inputs = read_inputs(pipeline)
            if not inputs.gold:
                raise InputError(
                    f"{path} has no score, as the input has no gold answers of a "
                    f"{pipeline.kind}; name their column as `label_column`."
                )
            if reference is not None and reference.kind != pipeline.kind:
                raise InputError(
                    f"The `teacher` is of the kind {reference.kind}, and {path} of the kind "
                    f"{pipeline.kind}; give a teacher of that task."
                )
            if reference is not None and expected is None:
                expected = task.answers(predict_inputs(reference, inputs))
            label = {"positive_label": positive_label}
            scores.append(cached(_score, path, inputs=inputs, expected=expected, **label))
        before, metric = metric, scores[0]["metric"]
        if before not in (None, metric):
            raise InputError(
                f"{first} is scored by {metric}, and those before it by {before}; compare files "
                "of one task."
            )
        candidate.baseline, candidate.counts = scores[0]["baseline"], scores[0]["counts"]
        candidate.score = Estimate.of(row["score"] for row in scores)
        if candidate.score is None:
            raise InputError(
                f"{first} has no {metric}: it is not a number there; leave the file out."
            )
        candidate.agreement = Estimate.of(row["agreement"] for row in scores)
    return metric


def pareto(points):
    """Return for each (cost, score) pair whether it is on the Pareto frontier.

    A pair is not if another costs no more and scores no less, and differs from it.
    """
    return [
        not any(c <= cost and s >= score and (c, s) != (cost, score) for c, s in points)
        for cost, score in points
    ]


class _Cache:
    """Cache of function results, keyed by a file's content and the arguments."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.known = read_json(self.path) if self.path.exists() else {}

    def __call__(self, function, path, **arguments):
        digest = hashlib.sha256(pathlib.Path(path).read_bytes())
        text = json_text(arguments, default=vars)  # of `Inputs`
        digest.update(text.encode("utf-8", "backslashreplace"))
        key = f"{function.__name__.strip('_')} {digest.hexdigest()}"
        if key not in self.known:
            self.known[key] = function(path, **arguments)
            write_json(self.path, self.known)
        return self.known[key]


def _score(path, inputs, expected, positive_label):
    """Compute a file's main score, and its agreement with the reference's answers."""
    pipeline = load_runner(path, num_threads=2)
    task = task_of(pipeline, positive_label)
    predictions = predict_inputs(pipeline, inputs)
    scores = task.score(inputs, predictions)
    metric = next(iter(scores)) if positive_label is None else "f1"
    agreement = None
    if expected is not None:  # a scorer of one number for all texts has no correlation
        agreement = task.compare(task.answers(predictions), expected)[task.figure] or 0.0
    return {
        "metric": metric,
        "score": scores[metric],
        "agreement": agreement,
        "baseline": scores.get(f"baseline_{metric}"),
        "counts": {k: scores[k] for k in ("confusion", "only_answer") if k in scores},
    }


def table_rows(candidates, metric):
    """Return the header and a row of texts for each candidate, the smallest first."""
    shown = sorted(candidates, key=lambda c: (c.size_mb, c.name))
    best = {name: _frontier(shown, cost) for name, (_, cost) in COSTS.items()}
    agreement = any(c.agreement for c in shown)
    header = ["model", metric, *(["agreement"] if agreement else [])]
    header += ["MB", "ms at 16", "ms at 32", "ms at 128", "first call ms", "create ms"]
    rows = [[*header, "ms, mixed / equal lengths", "peak MB", "frontier"]]
    for c in shown:
        figures, count = c.figures, len(c.paths)
        warm = [figures["latency_ms"]["1"].get(str(n)) for n in (16, 32, 128)]
        row = [c.name, _estimate(c.score, count)]
        row += [_estimate(c.agreement, count)] if agreement else []
        row += [f"{c.size_mb:.2f}", *("-" if ms is None else f"{ms:.2f}" for ms in warm)]
        row += [f"{figures[name]:.1f}" for name in ("first_call_ms", "create_ms")]
        row += [f"{figures['mixed_ms'] / figures['equal_ms']:.2f}"]
        row += [f"{figures['peak_memory_mb']:.0f}"]
        rows.append([*row, " ".join(name for name in COSTS if c.name in best[name])])
    if shown[0].baseline is not None:
        score = f"{shown[0].baseline:.4f}"
        rows.append(["(baseline)", score, *["-"] * (len(rows[0]) - 3), ""])
    return rows


def page(candidates, metric, title):
    """Return the HTML page: a plot for each cost, the table, and each file's answers."""
    rows = table_rows(candidates, metric)
    best = [number for number, row in enumerate(rows[1:]) if row[-1]]
    counts = "\n".join(_counts(c) for c in candidates if c.counts)
    answers = f"<h2>Answers</h2>\n{counts}\n" if counts else ""
    return html_page(
        title,
        f"""<h1>{html.escape(title)}</h1>
<p>Marked, and joined in the plots: no other file is smaller (or faster) and scores as much. Bars
are standard errors over seeds. Latency is of warm calls on one thread; peak memory is that of a
Python process. Mixed / equal lengths: the time of a text where the length changes with each call,
over that of texts of one length.</p>
<div class="beside">{_plots(candidates, metric)}</div>
{html_table(rows, marked=best)}
{answers}""",
    )


def scatter(points, label, metric):
    """Return an SVG of (cost, score, error or None, name) points, with the frontier joined.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    best = pareto([(cost, score) for cost, score, _, _ in points])
    figure = Figure(figsize=(5.8, 4), layout="constrained")
    axes = figure.add_subplot(xlabel=label, ylabel=metric)
    axes.grid(alpha=0.3)
    frontier = sorted(point[:2] for point, is_best in zip(points, best, strict=True) if is_best)
    axes.plot(*zip(*frontier, strict=True), "--", color="C0", linewidth=1)
    middle = max(cost for cost, *_ in points) / 2
    for (cost, score, error, name), is_best in zip(points, best, strict=True):
        color, group = ("C0", "frontier") if is_best else ("C7", "beaten")
        axes.errorbar(cost, score, error, color=color)
        axes.plot(cost, score, "o", color=color, gid=f"{group}: {name}")
        # Names near the right edge go to the left, or the plot would shrink for them.
        side, align = (7, "left") if cost <= middle else (-7, "right")
        axes.annotate(
            name, (cost, score), (side, 0), textcoords="offset points", ha=align, va="center"
        )
    axes.set_xlim(left=0)
    axes.margins(y=0.1)
    return svg_of(figure, f"{metric} by {label}; the table has the numbers")


def _plots(candidates, metric):
    """Return the SVG of each cost; "" and a line in the log without matplotlib."""
    plots = []
    for label, cost in COSTS.values():
        timed = [c for c in candidates if cost(c) is not None]
        points = [(cost(c), c.score.mean, c.score.error, c.name) for c in timed]
        try:
            plots += [scatter(points, label, metric)] if points else []
        except ImportError:
            logging.info("No plots on the page: pip install matplotlib for them.")
            return ""
    return "".join(f'<figure class="plot">{plot}</figure>' for plot in plots)


def _counts(candidate):
    """Return HTML of a candidate's confusion matrix, and of its only answer if it has one."""
    matrix, answer = (candidate.counts.get(key) for key in ("confusion", "only_answer"))
    lines = []
    if matrix is not None:
        name, table = html.escape(candidate.name), html_table(matrix_rows(matrix))
        lines.append(f"<details><summary>{name}</summary>\n{table}\n</details>")
    if answer is not None:
        sentence = f"{candidate.name} answers {answer} to all texts, whose gold answers differ."
        lines.append(f"<p>{html.escape(sentence)}</p>")
    return "\n".join(lines)


def _frontier(candidates, cost):
    """Return the names of the candidates on the frontier, among those that have the cost."""
    timed = [c for c in candidates if cost(c) is not None]
    marks = pareto([(cost(c), c.score.mean) for c in timed])
    return {c.name for c, is_best in zip(timed, marks, strict=True) if is_best}


def _estimate(estimate, count):
    """Format an estimate, with the number of its values if it is not `count`."""
    if estimate is None:
        return "-"
    error = f" ± {estimate.error:.4f}" if estimate.error else ""
    left = f" of {estimate.count}" if estimate.count != count else ""
    return f"{estimate.mean:.4f}{error}{left}"
