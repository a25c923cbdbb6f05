"""Predictions in parts: together those of the whole file, kept after a kill, and refused."""

import dataclasses
import json

import pytest

from distill.reports import (
    Columns,
    Predictor,
    predict_files,
    predict_inputs,
    prediction_task,
    task_of,
    write_predictions,
)
from distill.reports.prediction_shards import FileRange
from distill.runtime import load_runner
from tests.beam import NO_BEAM
from tests.distill.reports.test_predictions import FILES
from tfnlp.utils.errors import InputError
from tfnlp.utils.shard_work import in_beam


@pytest.mark.parametrize("kind", FILES)
def test_parts_are_together_the_predictions_of_the_whole(kind, files, tmp_path):
    name, text = FILES[kind]
    (tmp_path / name).write_text(text, encoding="utf-8")
    runner = load_runner(files[kind])
    task = task_of(runner)
    inputs = task.read(tmp_path / name)
    write_predictions(tmp_path / "whole", runner, inputs, predict_inputs(runner, inputs))
    predictor = Predictor(str(files[kind]), task, Columns())
    summary = predict_files(predictor, [tmp_path / name], tmp_path / "parts", 2e-6)
    assert summary == json.loads((tmp_path / "whole" / "summary.json").read_text())
    parts = sorted((tmp_path / "parts").glob("predictions-*"))
    assert kind == "answerer" or len(parts) > len(inputs.texts)
    header = 0 if task.header is None else 1
    lines = [line for part in parts for line in part.read_text().splitlines()[header:]]
    assert (
        lines
        == (tmp_path / "whole" / f"predictions{task.suffix}").read_text().splitlines()[header:]
    )


def test_a_killed_run_keeps_its_parts_and_another_is_refused(file, tmp_path):
    source, folder = tmp_path / "a.txt", tmp_path / "said"
    source.write_text("a film\nfine\n" * 20)
    predictor = Predictor(str(file), prediction_task("classifier", ["bad", "good"]), Columns())

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
            source.write_text("a film\n")
        with pytest.raises(InputError, match=f"holds predictions of another `{name}`; give"):
            predict_files(dataclasses.replace(predictor, **change), [source], folder, size)


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


def test_a_taggers_files_are_cut_between_sentences(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a O\nb O\n\nc O\n\nd O\n")
    predictor = Predictor("m", prediction_task("tagger", ["O"]), Columns())
    assert {part.unit for part in predictor.plan(path, 3)} == {"blank_lines"}
    for name in ("a.tsv", "a.TSV"):
        path = path.rename(tmp_path / name)
        assert predictor.plan(path, 3) == [FileRange(path, "files")]
