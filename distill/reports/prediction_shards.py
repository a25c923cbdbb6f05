"""Predictions of a model for files of any size, shard by shard."""

import dataclasses
import functools
import hashlib
import itertools
import json
import pathlib

from distill import runtime
from tfnlp import pipelines
from tfnlp.corpora import find_files
from tfnlp.corpora.file_ranges import ROWS, FileRange, as_file, plan_ranges
from tfnlp.pipelines.inputs import Columns, Inputs
from tfnlp.pipelines.prediction_tables import input_table, write_table
from tfnlp.pipelines.prediction_tasks import PredictionTask
from tfnlp.pipelines.predictions import predict_inputs, print_summary, write_lines
from tfnlp.tasks.kinds import TAGGER
from tfnlp.utils.errors import InputError
from tfnlp.utils.files import check_absent, make_folder, read_json, write_json
from tfnlp.utils.shard_work import run_shards

SETTINGS, SUMMARY = "settings.json", "summary.json"


@dataclasses.dataclass(frozen=True)
class Predictor:
    """Model to predict with, and how it reads files; pickled for the processes that do.

    Args:
        model: a .tflite file, or the folder of a model.
        task: its `PredictionTask`.
        columns: `Columns` of the files.
        batch_size: texts in a batch, for a folder.
        num_threads: threads of LiteRT, for a file.
    """

    model: str
    task: PredictionTask
    columns: Columns
    batch_size: int = 32
    num_threads: int = 1

    def load(self):
        """Return the `Pipeline` of the model."""
        if pathlib.Path(self.model).is_file():
            return runtime.load_runner(self.model, self.num_threads)
        return pipelines.load_runner(self.model, self.batch_size)

    def plan(self, path, shard_mb):
        """Return the `FileRange`s of a file, of `shard_mb` megabytes each.

        Whether a tagger's file has tags is read from all of it, if `columns` does not say.
        """
        unit = "lines"
        if self.task.kind == TAGGER and self.task.is_tagged(path, self.columns):
            if path.suffix.lower() in ROWS:
                return [FileRange(path, "files")]  # whose lines are words, not rows
            unit = "blank_lines"
        return [part for (part,) in plan_ranges([(path, path.stat().st_size)], shard_mb, unit)]

    def read(self, path, unit):
        """Return the `Inputs` and `Columns` of a file that holds a range with this `unit`."""
        columns = self.columns
        if self.task.kind == TAGGER:
            columns = dataclasses.replace(columns, tagged=unit != "lines")
        return self.task.read(path, columns), columns


def predict_files(predictor, patterns, folder, shard_mb, map_shards=None, table=None):
    """Write predictions-00000.tsv, or .jsonl, and so on for parts of files, and summary.json.

    With a `table` such as said.parquet, these are tables as of `write_table`, said-00000.parquet
    and so on; a part without texts has none.

    A part is a range of one file, and its predictions are those of a file of that range alone.
    Parts that are there are kept, so that a killed call resumes.

    Args:
        predictor: a `Predictor`.
        patterns: the files, as in `find_files`.
        folder: to write into.
        shard_mb: the megabytes of a file in a part, see `plan_ranges`.
        map_shards: of `tfnlp.utils.shard_work`, such as `in_beam(runner)`, whose workers must
            all see the same files; in this process where None.
        table: the name of the tables; None for lines, as of `write_lines`.

    Returns:
        The summary, as of `summarise`. It has scores where all files have gold labels.

    Raises:
        InputError: as reading does, or if the folder holds predictions of another model or file.
    """
    folder, paths = pathlib.Path(folder).absolute(), [x.absolute() for x in find_files(patterns)]
    model = pathlib.Path(predictor.model)  # or a name on the Hub
    made_from = {
        "model": _content_hash(model) if model.exists() else predictor.model,
        "columns": dataclasses.asdict(predictor.columns),
        "shard_mb": shard_mb,
        "output": table,
        "probabilities": predictor.task.probabilities,
        "input": [[str(path), _content_hash(path)] for path in paths],
    }
    made_from = json.loads(json.dumps(made_from))  # with lists for tuples, as a file has them
    make_folder(folder)
    if not (folder / SETTINGS).exists():
        if table:  # whose folder may have files of others
            check_absent(folder / SUMMARY)
        write_json(folder / SETTINGS, made_from)
    for name, value in read_json(folder / SETTINGS).items():
        if value != made_from.get(name):
            raise InputError(
                f"{folder} holds predictions of another `{name}`; give another folder."
            )
    items = list(enumerate(part for path in paths for part in predictor.plan(path, shard_mb)))
    load = functools.partial(_shard_maker, folder, predictor, table)
    run_shards(load, items, "predicting", map_shards)
    parts = [read_json(_facts_path(folder, number)) for number, _ in items]
    summary = {name: sum(part[name] for part in parts) for name in ("texts", "cut")}
    if all(part["gold"] for part in parts if part["texts"]):
        gold, ids, answers = (
            [*itertools.chain.from_iterable(part[name] for part in parts)]
            for name in ("gold", "ids", "answers")
        )
        summary |= predictor.task.score_answers(Inputs([], None, gold, ids), answers)
    write_json(folder / SUMMARY, summary)
    print_summary(summary, parts[0]["max_length"])
    return summary


def _facts_path(folder, number):
    return folder / f"part-{number:05d}.json"


def _shard_maker(folder, predictor, table):
    """Return a function from the number and the `FileRange` of a part to its files.

    A part's counts and, where it has gold answers, what its score needs, are written last.
    """
    pipeline, task = predictor.load(), predictor.task

    def make(item):
        number, part = item
        if _facts_path(folder, number).exists():
            return
        inputs, rows, predictions = Inputs([]), None, []
        with as_file(part) as path:
            if path is not None:
                inputs, columns = predictor.read(path, part.unit)
                rows = table and input_table(task, inputs, path, columns)
                predictions = predict_inputs(pipeline, inputs)
        name = pathlib.Path(table or f"predictions{task.suffix}")
        output = folder / f"{name.stem}-{number:05d}{name.suffix}"
        if not table:
            write_lines(output, task, inputs, predictions)
        elif rows:
            write_table(output, rows, task, predictions)
        scored = inputs.gold is not None
        facts = {
            "texts": len(inputs.texts),
            "cut": task.count_truncated(pipeline, inputs, predictions),
            "max_length": pipeline.max_length,
            "gold": inputs.gold if scored else [],
            "ids": inputs.ids or [] if scored else [],
            "answers": [task.answer(prediction) for prediction in predictions] if scored else [],
        }
        write_json(_facts_path(folder, number), facts)

    return make


def _content_hash(path):
    """Return the SHA-256 of a file, or of the files of a folder and of those in it."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            with open(file, "rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()
