"""The recipe that prepares a corpus, as a user runs it."""

import json
import subprocess
import sys

from tests.grammar_corpus import make_reviews
from tests.recipes.processes import RECIPES
from tfnlp.objectives import ShardedCorpus
from tfnlp.text import train_wordpiece


def run(*flags, status=0):
    """What the recipe says; in a Python of its own, which needs no TensorFlow."""
    command = [sys.executable, RECIPES / "prepare_corpus.py", *flags]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd="/")
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_corpus_is_prepared_by_two_processes_and_is_there_then(tmp_path):
    train_wordpiece([text for text, _ in make_reviews(200)], 300).save(tmp_path / "tokenizer")
    reviews = [text for text, _ in make_reviews(100)]
    reviews = [*dict.fromkeys(reviews)]
    lines = [*reviews, "", "  ".join(reviews[0].split()), "Xylophone!"]
    rows = "".join(json.dumps({"body": {"text": line}}) + "\n" for line in lines)
    (tmp_path / "reviews.jsonl").write_text(rows, encoding="utf-8")
    (tmp_path / "more.txt").write_text("One line.\nTwo. Three?\n\nFour!", encoding="utf-8")
    folder = tmp_path / "corpus"
    flags = [f"--input={tmp_path}/*.jsonl,{tmp_path / 'more.txt'}", f"--output_dir={folder}"]
    flags += ["--text_column=body.text", f"--tokenizer_dir={tmp_path / 'tokenizer'}"]
    said = run(*flags, "--deduplicate", "--processes=2")
    counts = json.loads((folder / "manifest.json").read_text())["counts"]
    assert counts["documents"] == len(reviews) + 3 == len(ShardedCorpus(folder))
    assert (counts["duplicates"], counts["empty"]) == (1, 1) and counts["unknown"] > 0
    share = 100 * counts["unknown"] / counts["tokens"]
    assert f"{counts['tokens']:,} tokens, {share:.3f} % of them unknown; left out: 1 dup" in said
    assert ShardedCorpus(folder).sentence_counts[-2:].tolist() == [3, 1]
    run(*flags, "--deduplicate")
    assert "must be given" in run("--input=x", f"--output_dir={folder}", status=2)
    for changed, message in (
        (["--sentences=lines"], "a corpus of --deduplicate=True, here --deduplicate=False;"),
        (["--tokenizer_dir=none/here"], "Error: none/here"),
        ([f"--input={tmp_path / 'none.txt'}"], "none.txt does not exist"),
        (["--documents=pages"], "--documents=pages must be"),
        ([f"--output_dir={tmp_path / 'other'}", "--text_column=body"], "field 'body' must be a"),
    ):
        error = run(*flags, *changed, status=2).splitlines()[-1]
        assert error.startswith("Error: ") and message in error, error
