"""Hits of a file are ranked anew as a user does it."""

import json

import pytest

from tests.recipes.refusals import check_refusals
from tfnlp.checkpoints import save_model
from tfnlp.models import build_model
from tfnlp.pipelines import load_runner
from tfnlp.tasks.retrieval import ndcg_10

TEXTS = ["a fine film", "the dull plot", "film", "the film is not fine"]


@pytest.fixture
def flags(tmp_path):
    rows = ["query\ttext\trelevant\tsource"]
    rows += [
        f"{q}\t{t}\t{int(i == 3)}\t{i}" for q in ("film", "plot") for i, t in enumerate(TEXTS)
    ]
    (tmp_path / "hits.tsv").write_text("\n".join(rows))
    files = [f"--model={tmp_path / 'pairs'}", f"--input={tmp_path / 'hits.tsv'}"]
    return [*files, f"--output={tmp_path / 'ranked.jsonl'}", "--first=3"]


def test_hits_are_sorted_by_the_model(run, flags, one_layer, tokenizer, tmp_path):
    model = build_model(one_layer, "classifier", 1)
    save_model(model, tmp_path / "pairs", None, tokenizer, {"pairs": True})
    done = run("rerank", *flags, "--relevance_column=relevant")
    lines = [json.loads(line) for line in (tmp_path / "ranked.jsonl").open()]
    scores = load_runner(tmp_path / "pairs").score(["film"] * 3, TEXTS[:3])
    order = sorted(range(3), key=lambda i: -scores[i])
    assert [x["text"] for x in lines[:4]] == [TEXTS[i] for i in order] + [TEXTS[3]]
    assert [x["source"] for x in lines[:4]] == [*map(str, order), "3"]
    assert [x["score"] for x in lines[:3]] == pytest.approx([scores[i] for i in order], rel=1e-5)
    assert lines[3]["score"] is None and {x["query"] for x in lines[4:]} == {"plot"}
    value = ndcg_10([0, 0, 0, 1])
    assert f"nDCG@10 {value:.4f} before, {value:.4f} after" in done.stdout
    assert "ms a query" in done.stdout


def test_bad_input_is_one_sentence(flags, tmp_path):
    (tmp_path / "below.tsv").write_text("query\ttext\trelevant\nfilm\ta film\t-1\n")
    check_refusals(
        "rerank",
        flags,
        {
            "--output=x.csv": "output=x.csv",
            "--text_column=hit": "hit",
            "--num_threads=2": "no .tflite file",
            "--relevance_column=text": "text 'a fine film'",
            f"--input={tmp_path / 'none.tsv'}": "none.tsv",
            f"--relevance_column=relevant --input={tmp_path / 'below.tsv'}": "relevant=-1",
        },
    )
