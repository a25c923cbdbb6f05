"""Predictions in parts: together those of the whole file, kept after a kill, and refused."""

import dataclasses
import json
import os

import pytest

from distill.reports import Predictor, predict_files
from distill.reports.prediction_shards import FileRange, as_file
from distill.runtime import load_runner
from tests.beam import NO_BEAM
from tests.pipelines.test_predictions import FILES
from tfnlp.pipelines import (
    Columns,
    Inputs,
    predict_inputs,
    prediction_task,
    task_of,
    write_predictions,
)
from tfnlp.text.reading.readers import read_rows
from tfnlp.utils.errors import InputError
from tfnlp.utils.shard_work import in_beam


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        *((kind, *file) for kind, file in FILES.items()),
        ("tagger", "a.txt", "a film\n\n\nfine plot is\n\nthe film\n\n"),
        ("answerer", "a.tsv", "question\tcontext\nfilm ?\ta film\nplot ?\ta fine plot\n"),
    ],
)
def test_parts_are_together_the_predictions_of_the_whole(kind, name, text, files, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    runner = load_runner(files[kind])
    task = task_of(runner)
    inputs = task.read(tmp_path / name)
    write_predictions(tmp_path / "whole", runner, inputs, predict_inputs(runner, inputs))
    predictor = Predictor(str(files[kind]), task, Columns())
    summary = predict_files(predictor, [tmp_path / name], tmp_path / "parts", 2e-6)
    assert summary == json.loads((tmp_path / "whole" / "summary.json").read_text())
    parts = sorted((tmp_path / "parts").glob("predictions-*"))
    assert name == "a.json" or len(parts) > len(inputs.texts)
    header = 0 if task.header is None else 1
    lines = [line for part in parts for line in part.read_text().splitlines()[header:]]
    assert (
        lines
        == (tmp_path / "whole" / f"predictions{task.suffix}").read_text().splitlines()[header:]
    )


def test_tables_of_parts_have_all_rows_and_columns(file, tmp_path):
    pytest.importorskip("pyarrow", reason="needs .[parquet]")
    rows = [{"id": i, "sentence": "a film" if i % 2 else "fine"} for i in range(9)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    predictor = Predictor(str(file), prediction_task("classifier", ["bad", "good"]), Columns())
    for table in ("said.parquet", "said"):
        folder = tmp_path / f"as_{table}"
        predict_files(predictor, [tmp_path / "a.jsonl"], folder, 6e-5, table=table)
        tables = sorted(folder.glob("said-*"))
        together = [row for path in tables for row in read_rows(path)]
        assert len(tables) > 3 and tables[0].suffix == table.removeprefix("said")
        assert [{name: row[name] for name in rows[0]} for row in together] == rows
        assert {row["prediction"] for row in together} <= {"bad", "good"}
    with pytest.raises(InputError, match="holds predictions of another `output`"):
        predict_files(predictor, [tmp_path / "a.jsonl"], folder, 6e-5)
    for name, said in (("summary", "is there"), ("settings", "of another `a`")):
        (tmp_path / f"{name}.json").write_text('{"a": 1}')  # of something else
        with pytest.raises(InputError, match=said):
            predict_files(predictor, [tmp_path / "a.jsonl"], tmp_path, 1, table="said.csv")


def test_a_killed_run_keeps_its_parts_and_another_is_refused(file, tmp_path):
    source, folder = tmp_path / "a.txt", tmp_path / "said"
    source.write_text("a film\nfine\n" * 20)
    columns = Columns(choices=("a", "b"))  # a list in the folder
    predictor = Predictor(str(file), prediction_task("classifier", ["bad", "good"]), columns)

    def killed(load, items):
        make = load()
        for item in items[:3]:
            make(item)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict_files(predictor, [source], folder, 4e-5, killed)
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("p*")}
    assert len(kept) == 6
    assert predict_files(predictor, [source], folder, 4e-5) == {"texts": 40, "cut": 0}
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    (tmp_path / "other.tflite").write_bytes(file.read_bytes() + b"\0")
    for change, size, name in (
        ({}, 1, "shard_mb"),
        ({"model": str(tmp_path / "other.tflite")}, 4e-5, "model"),
        ({"columns": Columns(label="")}, 4e-5, "columns"),
        ({}, 4e-5, "input"),
    ):
        if name == "input":
            times = source.stat().st_atime_ns, source.stat().st_mtime_ns
            source.write_text(source.read_text().replace("film", "plot"))
            os.utime(source, ns=times)  # of the same size and date
        with pytest.raises(InputError, match=f"holds predictions of another `{name}`; give"):
            predict_files(dataclasses.replace(predictor, **change), [source], folder, size)


def test_parts_of_another_model_are_refused_whatever_its_place(tmp_path):
    """Its files may be in folders of modules, and a name is of the Hub."""
    source, head = tmp_path / "a.txt", tmp_path / "model/2_Dense/model.safetensors"
    source.write_text("a film\n")
    head.parent.mkdir(parents=True)
    task = prediction_task("classifier", ["bad", "good"])

    def killed(load, items):
        raise KeyboardInterrupt

    for folder, model, other in (("here", head.parents[1], None), ("there", "a/film", "a/plot")):
        head.write_text("1")
        parts = [source], tmp_path / folder, 1, killed
        for _ in range(2):  # the same goes on
            with pytest.raises(KeyboardInterrupt):
                predict_files(Predictor(str(model), task, Columns()), *parts)
        head.write_text("2")
        with pytest.raises(InputError, match="holds predictions of another `model`; give"):
            predict_files(Predictor(str(other or model), task, Columns()), *parts)


def test_a_beam_pipeline_writes_the_same_files(file, tmp_path):
    pytest.importorskip("apache_beam", reason=NO_BEAM)
    (tmp_path / "a.jsonl").write_text('{"sentence": "a film"}\n{"sentence": "fine"}\n' * 20)
    predictor = Predictor(str(file), prediction_task("classifier", ["bad", "good"]), Columns())
    for name, map_shards in (("here", None), ("there", in_beam("DirectRunner"))):
        predict_files(predictor, [tmp_path / "a.jsonl"], tmp_path / name, 2e-4, map_shards)
    here, there = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("here", "there")
    )
    assert len(here) > 8 and here == there


@pytest.mark.parametrize(
    ("name", "text", "tagged"),
    [
        ("a.txt", "\n\na film\r\n \nfine plot is\n\nthe film", None),
        ("a.txt", "the O\nfine B-x\n\n\n\nfilm O\n", None),
        ("a.txt", "vitamin O\n\n\nfilm is O\n", False),  # of which one part looks tagged
        ("a.jsonl", '{"sentence": "a"}\n{"sentence": ""}\n\n{"sentence": "film"}\n', None),
        ("a.tsv", "sentence\na\n\nb\n\n", None),
        ("a.tsv", "a\tO\n\nb\tB-x\n\n", None),
    ],
)
def test_a_taggers_parts_are_read_as_the_whole_file_is(name, text, tagged, tmp_path):
    path, columns = tmp_path / name, Columns(tagged=tagged)
    path.write_bytes(text.encode())
    task = prediction_task("tagger", ["O", "B-x"])
    whole, predictor = task.read(path, columns), Predictor("m", task, columns)
    for size in (1, 2, 7, 100):
        texts, gold = [], []
        for part in predictor.plan(path, size / 1e6):
            with as_file(part) as piece:
                inputs = Inputs([]) if piece is None else predictor.read(piece, part.unit)[0]
            texts += inputs.texts
            gold += inputs.gold or []
        assert (texts, gold) == (whole.texts, whole.gold or [])


def test_a_taggers_files_are_cut_between_sentences(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a O\nb O\n\nc O\n\nd O\n")
    predictor = Predictor("m", prediction_task("tagger", ["O"]), Columns())
    assert {part.unit for part in predictor.plan(path, 3e-6)} == {"blank_lines"}
    for name in ("a.tsv", "a.TSV"):
        path = path.rename(tmp_path / name)
        assert predictor.plan(path, 3e-6) == [FileRange(path, "files")]
