"""Programs that run a file and measure it: predict, benchmark_tflite and frontier."""

import json

import pytest


def test_a_file_answers_is_scored_and_measured(corpus, teacher, student, exported, run, tmp_path):
    model = f"--model={exported[0] / 'model.tflite'}"
    long = run("predict", model, f"--text={'film ' * 200}", "--text=film")
    assert "1 of 2 texts were longer than the 128 tokens that are read of each." in long.stderr
    done = run("predict", model, "--text=the film is superb .", "--text=영화는 지루하다.")
    lines = done.stdout.splitlines()
    assert [line.split("\t")[2] for line in lines] == ["the film is superb .", "영화는 지루하다."]
    assert all(line.split("\t")[0] in ("negative", "positive") for line in lines)

    test = corpus[2].removeprefix("--test=")
    flags = [f"--input={test}", "--label_column=label", f"--output_dir={tmp_path / 'answers'}"]
    run("predict", model, *flags)
    summary = json.loads((tmp_path / "answers" / "summary.json").read_text())
    figures = json.loads((student[0] / "figures.json").read_text())
    assert summary["accuracy"] == pytest.approx(figures["test_accuracy"], abs=0.05)

    flags = [f"--model_dir={student[0] / 'best'}", f"--input={test}", "--repeats=3"]
    done = run("benchmark_tflite", model, *flags, f"--output_dir={tmp_path}")
    assert "On 64 texts, compared with float32 Keras: the same label in " in done.stdout
    figures = json.loads((tmp_path / "benchmark.json").read_text())
    assert set(figures["latency_ms"]) == {"1", "2"}
    assert set(figures["latency_ms"]["1"]) == {"16", "32", "64", "128"}

    flags = [f"--input={test}", f"--teacher={teacher[0] / 'best'}", "--repeats=2"]
    flags += [f"--models={exported[0] / 'model.tflite'}", f"--output_dir={tmp_path}"]
    run("frontier", *flags)
    header, row, _ = (line.split("\t") for line in (tmp_path / "frontier.tsv").open())
    found = dict(zip(header, row, strict=True))
    assert float(found["accuracy"]) == pytest.approx(summary["accuracy"], abs=1e-4)
    assert 0.3 < float(found["agreement"]) <= 1 and found["frontier\n"] == "size latency\n"
    assert "<svg" in (tmp_path / "frontier.html").read_text()
