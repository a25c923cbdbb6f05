"""Measurement of the table of costs: files of a teacher's parts, timed here or on a phone."""

import itertools
import math
import pathlib
import platform
import re

from distill.export import export_tflite
from distill.export.conversion import quiet
from distill.reports import benchmark_file
from distill.search.cost_table import CostTable, Measured, read_table
from distill.search.sub_student import SubStudent
from distill.search.supernet import extract
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import read_json
from tfnlp.utils.progress import progress_bar

# What LiteRT's benchmark_model says of a run, in microseconds, and of its file.
MICROSECONDS = re.compile(r"Inference \(avg\): ([\d.e+]+)")
MEGABYTES = re.compile(r"file size \(MB\): ([\d.e+]+)")


def grid(space):
    """Return the `SubStudent`s to measure, by which a table predicts the rest of a space.

    They are the ends of the numbers of layers, heads and units, and their middle.
    """
    numbers = space.num_layers, space.num_heads, space.intermediate_dim
    corners = itertools.product((0, -1), repeat=3)
    middle = tuple(len(x) // 2 for x in numbers)
    students = []
    for places in (*corners, middle):
        layers, heads, units = (x[place] for x, place in zip(numbers, places, strict=True))
        # Few and many tokens beside each other size in equal numbers, so that none hides another.
        tokens = space.keep_tokens[-(sum(places) % 2)]
        students.append(SubStudent(tuple(range(layers)), heads, units, tokens))
    return [*dict.fromkeys(students)]


def file_paths(space, folder, fixed_lengths):
    """Return {student of `grid`: path of its file in a folder}.

    The name has the `fixed_lengths` of the file, which its size does not show: times on a phone
    are known by it.
    """
    lengths = "".join(f"_at{length}" for length in fixed_lengths)
    name = "layers{}_heads{}_units{}_tokens{}{}.tflite"
    return {student: folder / name.format(*student.sizes, lengths) for student in grid(space)}


def write_files(paths, models, labels, options):
    """Write the files that are not there yet.

    Args:
        paths: of `file_paths`.
        models: {vocabulary size: (supernet's model, tokenizer)}.
        labels, options: as in `export_tflite`.
    """
    for student, path in progress_bar([*paths.items()], desc="files to time", unit="file"):
        if not path.exists():
            model, tokenizer = models[student.vocabulary_size]
            with quiet():  # the same notices for each file
                export_tflite(extract(model, student), path, tokenizer, labels, options)


def measure(paths, table_path, setting, rounds=3):
    """Return the `CostTable` of the files of `write_files` on this machine, and write it.

    Args:
        paths: as there.
        table_path: of the table.
        setting: a `Setting`.
        rounds: in which all files are timed in turn; the lowest median of each counts, since other
            load on the machine only adds to it.

    A table of another setting, such as a phone's, is replaced.
    """
    table = CostTable(setting)
    if table_path.exists():
        stored = read_table(table_path)
        table = stored if stored.setting == setting else table
    known = {row.sizes for row in table.rows}
    missing = [x for x in paths if x.sizes not in known]
    times = {student: [] for student in missing}
    for student in progress_bar(missing * rounds, desc="times", unit="file"):
        figures = benchmark_file(paths[student], (setting.tokens,), (1,))
        times[student] += figures["latency_ms"]["1"].values()
        if len(times[student]) == rounds:
            table.rows.append(Measured(*student.sizes, min(times[student]), figures["size_mb"]))
            table.write(table_path)
    return table


def read_results(paths, table_path, results, setting, tokens):
    """Return the `CostTable` of the files of `write_files` on another device, and write it.

    Args:
        paths, table_path, setting: as in `measure`.
        results: folder of NAME.json of `benchmark_tflite`, or NAME.txt of LiteRT's
            benchmark_model, for each NAME.tflite.
        tokens: of the text whose time is read from a NAME.json.

    Raises:
        InputError: if a result is missing, has no time, or is of a file of another size.
    """
    table = CostTable(setting)
    for student, path in paths.items():
        size_mb = path.stat().st_size / 1e6
        ms = _read_ms(pathlib.Path(results) / path.stem, tokens, size_mb)
        table.rows.append(Measured(*student.sizes, ms, size_mb))
    table.write(table_path)
    return table


def _read_ms(path, tokens, size_mb):
    """Return the milliseconds of a result, a path without its ending, of a file of `size_mb`."""
    page, log = (path.with_name(f"{path.name}.{ending}") for ending in ("json", "txt"))
    ms, measured_mb = None, size_mb
    if page.exists():
        figures = read_json(page)
        ms = figures.get("latency_ms", {}).get("1", {}).get(str(tokens))
        measured_mb = figures.get("size_mb", size_mb)
    elif log.exists():
        text = log.read_text("utf-8", "replace")
        if match := MICROSECONDS.search(text):
            ms = float(match[1]) / 1e3
        if match := MEGABYTES.search(text):
            measured_mb = float(match[1])
    if ms is None:
        raise InputError(
            f"{page} or {log} with the time at {tokens} tokens is missing; run {path.name}.tflite "
            "on the device by recipes.benchmark_tflite, or by benchmark_model and keep its log."
        )
    if not math.isclose(measured_mb, size_mb, rel_tol=1e-3):
        raise InputError(
            f"The results of {path} are of a file of {measured_mb:.3f} MB, but {path.name}.tflite "
            f"has {size_mb:.3f} MB, of other flags; run it on the device again."
        )
    return ms


def this_device():
    """Return the name of this machine's processor."""
    info = pathlib.Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.exists() else ()
    names = (x.partition(":")[2].strip() for x in lines if x.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def check_setting(table, setting, path):
    """Raise an InputError if a table is of another setting, but for the device.

    Args:
        table: a `CostTable`.
        setting: that it must have.
        path: of the table.
    """
    for name, value in vars(setting).items():
        stored = getattr(table.setting, name)
        if stored != value and name != "device":
            raise InputError(
                f"{path} was measured with {name.replace('_', ' ')} {stored}, not {value}; "
                "measure a table anew, in another folder."
            )


def check_covers(table, space, path):
    """Raise an InputError if a table's files all have one number where a space has others.

    Args:
        table: a `CostTable`.
        space: a complete `SearchSpace`.
        path: of the table.
    """
    columns = zip(*(row.sizes for row in table.rows), strict=True)
    for numbers, (name, wanted) in zip(columns, vars(space).items(), strict=True):
        if len({*numbers}) == 1 and not {*numbers} >= {*wanted}:
            raise InputError(
                f"All files of {path} have {name}={numbers[0]}, by which others cannot be "
                "predicted; measure a table by the flags of this search, `size_mb` too."
            )
