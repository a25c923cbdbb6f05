"""Size and latency of files, measured in a process of their own."""

import json
import types

import pytest

from distill.reports import latency
from distill.reports.latency import benchmark_file
from distill.runtime import LiteRtBackend
from tfnlp.utils.errors import InputError


def test_lengths_that_a_file_cuts_are_not_timed_and_the_first_call_comes_first(
    file, monkeypatch, capsys
):
    lengths, outputs = [], LiteRtBackend.run_one

    def counted(runner, encoding):
        lengths.append(len(encoding.token_ids))
        return outputs(runner, encoding)

    monkeypatch.setattr(LiteRtBackend, "run_one", counted)
    latency._measure(file, 1, [16, 40, 64, 128], [1, 2])
    figures = json.loads(capsys.readouterr().out)
    # LiteRT prepares its graph with the first text of all, which is therefore the one timed.
    assert lengths[0] == figures["first_call_tokens"] == 32
    assert {*lengths[1:]} == {1, 16, 40}
    assert [list(figures["latency_ms"][t]) for t in "12"] == [["16", "40"]] * 2
    lengths.clear()
    latency._measure(file, 1, [64, 128], [1])
    assert list(json.loads(capsys.readouterr().out)["latency_ms"]["1"]) == ["40"]
    assert {*lengths} == {32, 40}


def test_mixed_and_equal_lengths_take_turns(monkeypatch):
    lengths = []
    runner = types.SimpleNamespace(
        tokenizer=types.SimpleNamespace(vocabulary_size=30),
        backend=types.SimpleNamespace(run_one=None),
    )

    def timed(run, encoding):
        lengths.append(len(encoding.token_ids))
        return 1.0 if lengths[-2:-1] == lengths[-1:] else 3.0

    monkeypatch.setattr(latency, "_timed", timed)
    mixed, equal = latency.mixed_latencies(runner, (4, 8), 12)
    assert lengths[:20] == [4, 8] * 10 and lengths[20:40] == [4] * 10 + [8] * 10
    assert lengths[40:] == [4, 8] * 2 + [4] * 2 + [8] * 2
    assert (mixed, equal) == (3.0, 1.0)


def test_a_file_that_cannot_be_run_is_named_by_the_benchmark(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(b"junk" * 100)
    with pytest.raises(
        InputError, match=r"model\.tflite is no whole \.tflite with a tokenizer inside"
    ):
        benchmark_file(path)
