import json
import subprocess
import sys

import pytest

from tests.recipes.processes import RECIPES
from tests.recipes.refusals import check_refusals


def test_the_table_and_the_file_have_the_same_figures(corpus, tmp_path):
    words = [sys.executable, "-m", "recipes.baseline_classifier", *corpus]
    words += ["--units=words", "--classifiers=naive_bayes,linear_svm", f"--output_dir={tmp_path}"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=RECIPES.parent, check=True)
    header, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert header[:2] == ["baseline", "dev_accuracy"] and header[-2:] == ["MB", "ms"]
    results = json.loads((tmp_path / "baselines.json").read_text())
    assert [row[0] for row in rows] == ["words naive_bayes", "words linear_svm"]
    for row, result in zip(rows, results, strict=True):
        assert float(row[1]) == pytest.approx(result["scores"]["dev_accuracy"], abs=1e-4)
        assert result["bytes"] > 1000
    assert max(result["scores"]["test_accuracy"] for result in results) > 0.6  # chance is 0.5


def test_bad_flags_are_told_without_tensorflow(corpus):
    cases = {
        "--units=letters": "letters",
        "--classifiers=forest": "forest",
        "--lsa_dim=5": "--lsa_dim=5 gives negative numbers",
        "--multi_label --positive_label=positive": "--positive_label=positive has no effect",
        "--monitor=f1": "There is no flag --monitor",  # there is no epoch to select
    }
    check_refusals("baseline_classifier", corpus, cases)
