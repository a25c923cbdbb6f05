"""N-grams from the shell."""

import json

import pytest

from tests.recipes.refusals import refusals
from tfnlp.text import train_tokenizer


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "train.txt").write_text("a fine film\na dull film\nthe film is dull\n" * 4)
    (tmp_path / "test.txt").write_text("a fine film\nthe song is dull\n")
    return [f"--{name}={tmp_path / name}.txt" for name in ("train", "test")]


def test_figures_next_words_and_spelling(texts, run, tmp_path):
    asked = ["--text=The film", "--correct=a dlul filn", f"--output_dir={tmp_path}"]
    lines = run("baseline_lm", *texts, *asked, fresh=True).stdout.splitlines()
    figures = json.loads((tmp_path / "evaluation.json").read_text())["figures"]
    printed = dict(line.split() for line in lines[: len(figures)])
    assert printed["tokens"] == "9" and figures["unknown_share"] == 1 / 9
    assert float(printed["perplexity"]) == pytest.approx(figures["perplexity"], abs=1e-4)
    following, corrected = lines[len(figures) :]
    assert following.startswith("The film: is 0.") and corrected == "a dull film"


def test_pieces_of_a_tokenizer(texts, run, tmp_path):
    train_tokenizer(["a fine film", "the dull song"], "characters", 300, "gpt2")[0].save(tmp_path)
    flags = ["--documents=files", f"--tokenizer_dir={tmp_path}"]
    printed = run("baseline_lm", *texts, *flags).stdout
    assert "tokens               29\n" in printed  # 28 characters and an end
    characters = run("baseline_lm", *texts, "--documents=files", "--unit=characters").stdout
    assert "tokens               29\n" in characters


def test_bad_flags_are_told_without_tensorflow(texts):
    lines = [
        texts[:1],
        [*texts[:1], "--text=a", "--output_dir=b"],
        [*texts, "--correct=a", "--unit=characters"],
        [*texts, "--order=0"],
        [*texts, "--tokenizer_dir=d", "--min_count=2"],
        [*texts, "--edit_probability=2"],
    ]
    nothing, output, correct, order, min_count, edit = refusals("baseline_lm", lines)
    assert "--correct" in nothing and "--output_dir=b" in output
    assert "--correct=a" in correct and "--order" in order
    assert "--min_count=2 has no effect beside --tokenizer_dir=d, all" in min_count
    assert "--edit_probability=2 has no effect without --correct" in edit
