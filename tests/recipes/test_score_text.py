"""Texts are scored from the shell."""

import json
import re


def test_texts_are_scored_from_the_shell(run, refused, tmp_path):
    due, written = tmp_path / "due.txt", tmp_path / "written.tsv"
    due.write_text("a film to see\n정말 좋아요\n")
    written.write_text("text\na film to see\n\n")
    flags = [f"--references={due}", f"--hypotheses={written}"]
    done = run("score_text", *flags, f"--output={tmp_path / 's.json'}")
    assert re.search(r"^rouge1 +0\.5000$", done.stdout, re.M)
    scores = json.loads((tmp_path / "s.json").read_text())
    assert scores["word_precision"] == 1 and scores["word_recall"] == 4 / 6
    due.write_text("a film to see\n")
    assert "hypotheses holds 2 texts and references 1" in refused("score_text", *flags)
