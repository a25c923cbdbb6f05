"""Result table of a sweep: each variant's metrics over seeds, and its gain over the base."""

import pathlib

from recipes.sweeps.sweep_runs import read_figures
from tfnlp.plots import plot_variants
from tfnlp.utils.errors import unknown_name
from tfnlp.utils.files import write_text
from tfnlp.utils.formatting import aligned
from tfnlp.utils.seed_statistics import summarise_variants

# Metrics shown by default, if present: the first score with each prefix, and the others.
SCORES = ("dev_", "test_")
OTHERS = ("share_of_teacher", "accuracy", "parameters", "file_mb")


def write_table(sweep, folder):
    """Print the table of finished runs, and write table.tsv, runs.tsv and variants.png.

    Args:
        sweep: a `recipes.sweeps.sweep_file.Sweep`.
        folder: the sweep's folder.

    Raises:
        InputError: if the sweep names a metric that no run has.
    """
    runs = {name: {} for name in sweep.variants}  # {variant: {seed or fold: {name: number}}}
    for run in sweep.runs(folder):
        if figures := read_figures(run):
            runs[run.variant][run.number] = figures
    names = [*dict.fromkeys(n for seeds in runs.values() for f in seeds.values() for n in f)]
    if not names:
        print("No run is finished yet.")
        return
    metrics = sweep.metrics or _default_metrics(names)
    for name in metrics:
        if name not in names:
            raise unknown_name(f"{sweep.path}: metrics", name, names)
    summary, folder = summarise_variants(runs, sweep.base, metrics), pathlib.Path(folder)
    _print_table(sweep, runs, summary, metrics)
    write_text(folder / "table.tsv", _tsv(_summary_rows(runs, summary, metrics)))
    write_text(folder / "runs.tsv", _tsv(_run_rows(sweep.unit, runs, names)))
    plot_variants(runs, summary, sweep.base, folder / "variants.png")


def _default_metrics(names):
    scores = [next((n for n in names if n.startswith(begin)), None) for begin in SCORES]
    return [name for name in [*scores, *OTHERS] if name in names]


def _print_table(sweep, runs, summary, metrics):
    rows = [["variant", "runs", *metrics]]
    for name, figures in summary.items():
        count = len(runs[name])
        cells = [_cell(figures[metric], count) for metric in metrics]
        rows.append([f"{name} (base)" if name == sweep.base else name, str(count), *cells])
    print(*aligned(rows), sep="\n")
    unit = sweep.unit
    print(
        f"Means over {unit}s ± standard error; in brackets the difference to the base, by {unit}."
    )
    if any(" of " in cell for row in rows[1:] for cell in row[2:]):
        print(
            f"Of so many {unit}s alone where it says so: the others have no number, or the base "
            "none."
        )


def _cell(figure, count):
    if figure.estimate is None:
        return "-"
    text = _shown(figure.estimate, "", count)
    if figure.difference is None:
        return text
    return f"{text} ({_shown(figure.difference, '+', figure.estimate.count)})"


def _shown(estimate, sign, count):
    """Format an estimate, with its number of values if that is not `count`."""
    if estimate.mean == round(estimate.mean) and abs(estimate.mean) >= 1000:
        digits = ",.0f"
    else:
        digits = ".2f" if abs(estimate.mean) >= 10 else ".4f"
    text = format(estimate.mean, f"{sign}{digits}")
    # A constant, such as a size, is shown without an error.
    text = f"{text} ± {estimate.error:{digits}}" if estimate.error else text
    return text if estimate.count == count else f"{text} of {estimate.count}"


def _summary_rows(runs, summary, metrics):
    kinds = ("", "_error", "_seeds", "_difference", "_difference_error", "_difference_seeds")
    yield ["variant", "runs", *(f"{metric}{kind}" for metric in metrics for kind in kinds)]
    for name, figures in summary.items():
        row = [name, str(len(runs[name]))]
        for metric in metrics:
            for estimate in (figures[metric].estimate, figures[metric].difference):
                row += [_number(estimate and estimate.mean), _number(estimate and estimate.error)]
                row.append(str(estimate.count if estimate else 0))
        yield row


def _run_rows(unit, runs, names):
    yield ["variant", unit, *names]
    for variant, of_variant in runs.items():
        for number, figures in of_variant.items():
            yield [variant, str(number), *(_number(figures.get(name)) for name in names)]


def _number(value):
    return "" if value is None else f"{value:.10g}"


def _tsv(rows):
    return "".join("\t".join(row) + "\n" for row in rows)
