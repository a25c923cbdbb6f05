"""Files side by side: the frontier, its page, and what a benchmark says of a file."""

import html.parser
import math
import re
import shutil
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from distill.reports import pareto_frontier
from distill.reports.latency import benchmark_file, print_benchmark
from distill.reports.pareto_frontier import Candidate, find_candidates, name_candidates, pareto
from distill.runtime import load_runner
from tfnlp.pipelines import Columns, Inputs, task_of
from tfnlp.tasks.kinds import SCORER, TAGGER
from tfnlp.utils.errors import InputError
from tfnlp.utils.seed_statistics import Estimate


class Numbers:
    """A runner of a scorer that says the numbers it is given."""

    kind, labels, settings = SCORER, None, {}

    def __init__(self, numbers):
        self.numbers = numbers

    def predict(self, texts, second_texts=None):
        return self.numbers


def test_a_scorer_agrees_with_its_teacher_by_their_correlation(tmp_path, monkeypatch):
    numbers = {"a.tflite": [0.5, 2.0, 1.5, 4.0], "none.tflite": [math.nan] * 4}
    path, none = (tmp_path / name for name in numbers)
    for name in numbers:
        (tmp_path / name).write_text(name)
    runner = lambda path, num_threads: Numbers(numbers[path.name])  # noqa: E731
    monkeypatch.setattr(pareto_frontier, "load_runner", runner)
    monkeypatch.setattr(pareto_frontier, "benchmark_file", lambda path, **_: {})
    inputs = Inputs(["a", "b", "c", "d"], None, [1.0, 2.0, 3.0, 4.0])

    def measured(*paths, reference=None):
        candidate, cache = Candidate("a", [*paths]), tmp_path / "measured.json"
        pareto_frontier.measure_candidates([candidate], lambda _: inputs, cache, reference)
        return candidate

    def agreement(reference):
        return measured(path, reference=reference).agreement.mean

    others = [1.0, 2.0, 3.0, 3.5]
    expected = np.corrcoef(numbers[path.name], others)[0, 1]
    assert expected == pytest.approx(0.8170, abs=1e-4)
    assert agreement(Numbers(others)) == pytest.approx(expected)
    assert agreement(Numbers([1.0] * 4)) == 0
    assert pareto_frontier._estimate(measured(path, none).score, 2).endswith(" of 1")
    with pytest.raises(InputError, match="has no pearson"):
        measured(none)
    tagger = Numbers(others)
    tagger.kind = TAGGER
    with pytest.raises(InputError, match="kind tagger"):
        agreement(tagger)


def test_files_of_two_scores_are_refused(tmp_path, monkeypatch):
    def _score(path, **_):
        return {"metric": path.stem, "score": 0.5, "agreement": None, "baseline": 0, "counts": {}}

    monkeypatch.setattr(pareto_frontier, "_score", _score)
    monkeypatch.setattr(pareto_frontier, "load_runner", lambda path, num_threads: Numbers([1.0]))
    monkeypatch.setattr(pareto_frontier, "benchmark_file", lambda path, **_: {})
    paths = [tmp_path / "accuracy.tflite", tmp_path / "pearson.tflite"]
    for path in paths:
        path.write_text(path.name)
    candidates, inputs = [Candidate(x.stem, [x]) for x in paths], Inputs(["a"], None, [1.0])
    with pytest.raises(InputError, match="scored by pearson, and those before it by accuracy"):
        pareto_frontier.measure_candidates(candidates, lambda _: inputs, tmp_path / "x.json")


def test_the_frontier_holds_points_that_no_other_beats():
    points = [(1, 0.5), (2, 0.7), (3, 0.7), (2.5, 0.9), (4, 0.95), (4, 0.9), (1, 0.5)]
    assert pareto(points) == [True, True, False, True, True, False, True]
    # Equal scores, the dearer of them; and equal costs.
    assert pareto([(2, 0.7), (2.2, 0.7)]) == [True, False]
    assert pareto([(2, 0.7), (2, 0.6)]) == [True, False]
    assert pareto([]) == []


def test_candidates_are_named_by_the_parts_of_paths_that_differ(tmp_path):
    paths = ["runs/a/export/model.tflite", "runs/b/export/model.tflite"]
    assert [c.name for c in name_candidates(paths)] == ["a", "b"]
    assert [c.name for c in name_candidates(["x/one.tflite", "x/two.tflite"])] == ["one", "two"]
    assert [c.name for c in name_candidates(["x/one.tflite"])] == ["one"]
    paths = ["a/x/model.tflite", "b/y/model.tflite"]
    assert [c.name for c in name_candidates(paths)] == ["a/x", "b/y"]
    paths = ["model.tflite", "a/model.tflite"]
    assert [c.name for c in name_candidates(paths)] == paths
    with pytest.raises(InputError, match=r"holds no VARIANT/seed_N/STEP/\*\.tflite; give"):
        find_candidates(tmp_path)
    files = ["a/seed_0/int8/m", "a/seed_1/int8/m", "b/seed_0/int8/m", "b/seed_0/float/m"]
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / f"{name}.tflite").touch()
    found = {c.name: len(c.paths) for c in find_candidates(tmp_path)}
    assert found == {"a": 2, "b/float/m": 1, "b/int8/m": 1}


def test_files_are_scored_timed_and_cached(file, tmp_path, monkeypatch):
    copy, texts = tmp_path / "copy.tflite", tmp_path / "dev.tsv"
    shutil.copy(file, copy)
    runner = load_runner(file)
    rows = ["a fine film", "dull plot", "not fine", "정말 좋다"]
    said = [found.label for found in runner.classify(rows)]
    wrong = {"bad": "good", "good": "bad"}
    right = [said[0], said[1], said[2], wrong[said[3]]]
    lines = [f"{text}\t{label}\n" for text, label in zip(rows, right, strict=True)]
    texts.write_text("sentence\tlabel\n" + "".join(lines), encoding="utf-8")
    # One variant with two seeds: what is timed, and how often, is counted.
    timed = []

    def timing(path, repeats):
        timed.append(path)
        return benchmark_file(path, repeats=repeats)

    monkeypatch.setattr(pareto_frontier, "benchmark_file", timing)

    def measured(label=None):
        candidates = [Candidate("both", [file, copy])]
        metric = pareto_frontier.measure_candidates(
            candidates,
            lambda pipeline: task_of(pipeline).read(texts, Columns()),
            tmp_path / "measured.json",
            reference=runner,
            repeats=2,
            positive_label=label,
        )
        assert metric == ("accuracy" if label is None else "f1")
        return candidates[0]

    found = measured()
    assert found.baseline == max(map(right.count, ("bad", "good"))) / 4
    assert np.sum(found.counts["confusion"]["counts"]) == 4
    rate = 2 * sum(s == r == "good" for s, r in zip(said, right, strict=True))
    f1 = rate / (said.count("good") + right.count("good"))
    assert measured("good").score == Estimate(pytest.approx(f1), 0.0, 2)
    assert timed == [file]
    assert found.score == Estimate(0.75, 0.0, 2) and found.agreement == Estimate(1.0, 0.0, 2)
    assert found.size_mb == pytest.approx(file.stat().st_size / 1e6)
    for key in ("create_ms", "first_call_ms", "mixed_ms", "equal_ms"):
        assert 0 < found.figures[key] < 60e3
    assert 0 < found.latency_ms == found.figures["latency_ms"]["1"]["32"]
    assert measured() == found and timed == [file]
    texts.write_text("sentence\na fine film\n", encoding="utf-8")
    with pytest.raises(InputError, match="has no score, as the input has no gold answers of a cl"):
        measured()


def test_the_page_is_whole_and_marks_the_frontier(capsys):
    def candidate(name, score, size, ms, error=None, lengths=(16, 32, 64, 128)):
        warm = {str(n): ms * n / 32 for n in lengths}
        figures = {"size_mb": size, "latency_ms": {"1": warm, "2": warm}, "create_ms": 14.0}
        figures |= {"first_call_ms": 9.0, "first_call_tokens": 32, "mixed_ms": 2.5}
        figures |= {"equal_ms": 2.0, "peak_memory_mb": 70.4, "memory_before_mb": 50.0}
        return Candidate(name, ["1", "2"], Estimate(score, error, 2), None, figures)

    candidates = [
        candidate("large & slow", 0.9, 20.0, 8.0, 0.01),
        candidate("small", 0.85, 2.0, 1.0),
        candidate("worse", 0.8, 2.0, 0.5),
        candidate("beaten", 0.7, 3.0, 2.0),
    ]
    header, *rows = pareto_frontier.table_rows(candidates, "accuracy")
    assert header[:2] == ["model", "accuracy"] and "agreement" not in header
    marks = {row[0]: row[-1] for row in rows}
    assert marks == {
        "large & slow": "size latency",
        "small": "size latency",
        "worse": "latency",
        "beaten": "",
    }
    candidates[1].baseline = 0.5
    candidates[1].counts = {
        "confusion": {"labels": ["<a>", "b"], "counts": [[3, 4], [0, 5]]},
        "only_answer": "b",
    }
    *others, baseline = pareto_frontier.table_rows(candidates, "accuracy")[1:]
    assert others == rows and len(baseline) == len(header)
    assert baseline[:3] == ["(baseline)", "0.5000", "-"] and baseline[-1] == ""
    small = dict(zip(header, rows[0], strict=True))
    assert (small["model"], small["MB"], small["ms at 32"]) == ("small", "2.00", "1.00")
    assert (small["ms, mixed / equal lengths"], small["peak MB"]) == ("1.25", "70")
    page = pareto_frontier.page(candidates, "accuracy", "dev <b>")
    assert "<title>dev &lt;b&gt;</title>" in page
    addresses = {*re.findall(r"https?://[^\"\s]*", page)}
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "<script" not in page
    assert '<th scope="row">&lt;a&gt;</th><td>3</td><td>4</td>' in page
    assert "<p>small answers b to all texts, whose gold answers differ.</p>" in page
    html.parser.HTMLParser().feed(page)
    plots = page.split("<svg")[1:]
    assert len(plots) == 2
    for plot in plots:
        tree = ElementTree.fromstring(f"<svg{plot.partition('</svg>')[0]}</svg>")
        texts = [text.text for text in tree.iter() if text.tag.endswith("text")]
        assert {"large & slow", "small", "worse", "beaten", "accuracy"} <= {*texts}
    # "worse" weighs as much as "small", but is faster.
    assert [plot.count('id="frontier: ') for plot in plots] == [2, 3]
    assert [plot.count('id="beaten: ') for plot in plots] == [2, 1]
    # A file of 16 tokens has no latency at 32: it is in no plot of it, and beats none.
    short = candidate("short", 0.95, 30.0, 0.1, lengths=(16,))
    header, *rows = pareto_frontier.table_rows([*candidates, short], "accuracy")
    cells = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    found = cells["short"]
    assert [found[f"ms at {n}"] for n in (16, 32, 128)] == ["0.05", "-", "-"]
    assert found["frontier"] == "size" and cells["worse"]["frontier"] == "latency"
    page = pareto_frontier.page([*candidates, short], "accuracy", "dev")
    counts = [len(re.findall('id="(frontier|beaten): ', plot)) for plot in page.split("<svg")[1:]]
    assert counts == [5, 4]
    assert pareto_frontier.page([short], "accuracy", "dev").count("<svg") == 1
    print_benchmark(candidates[0].figures)
    assert "in a row take 2.00 ms, 1.25 times less" in capsys.readouterr().out
