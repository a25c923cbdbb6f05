"""The table and the HTML page of the Pareto frontier."""

import html.parser
import re
import xml.etree.ElementTree as ElementTree

from distill.reports import frontier_page
from distill.reports.latency import print_benchmark
from distill.reports.pareto_frontier import Candidate
from tfnlp.utils.seed_statistics import Estimate


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
    header, *rows = frontier_page.table_rows(candidates, "accuracy")
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
    *others, baseline = frontier_page.table_rows(candidates, "accuracy")[1:]
    assert others == rows and len(baseline) == len(header)
    assert baseline[:3] == ["(baseline)", "0.5000", "-"] and baseline[-1] == ""
    small = dict(zip(header, rows[0], strict=True))
    assert (small["model"], small["MB"], small["ms at 32"]) == ("small", "2.00", "1.00")
    assert (small["ms, mixed / equal lengths"], small["peak MB"]) == ("1.25", "70")
    page = frontier_page.page(candidates, "accuracy", "dev <b>")
    assert "<title>dev &lt;b&gt;</title>" in page
    addresses = {*re.findall(r"https?://[^\"\s]*", page)}
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "<script" not in page
    assert "<td>&lt;a&gt;</td><td>3</td><td>4</td>" in page
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
    header, *rows = frontier_page.table_rows([*candidates, short], "accuracy")
    cells = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    found = cells["short"]
    assert [found[f"ms at {n}"] for n in (16, 32, 128)] == ["0.05", "-", "-"]
    assert found["frontier"] == "size" and cells["worse"]["frontier"] == "latency"
    page = frontier_page.page([*candidates, short], "accuracy", "dev")
    counts = [len(re.findall('id="(frontier|beaten): ', plot)) for plot in page.split("<svg")[1:]]
    assert counts == [5, 4]
    assert frontier_page.page([short], "accuracy", "dev").count("<svg") == 1
    onnx = {"onnxruntime": {"size_mb": 1.0, "latency_ms": {32: 4.0, 256: 8.0}}}
    print_benchmark(candidates[0].figures | {"onnx": onnx})
    said = capsys.readouterr().out
    assert "in a row take 2.00 ms, 1.25 times less" in said and "the file takes 2.00 of it" in said
    assert "1 thread, 256 tokens     8.00 ms\n" in said
