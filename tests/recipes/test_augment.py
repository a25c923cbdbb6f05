"""Texts are augmented from the shell."""

import pathlib
import re

from tfnlp.checkpoints import read_config, save_model
from tfnlp.models import build_model
from tfnlp.text import load_tokenizer


def test_texts_are_augmented_and_called_what_the_teacher_says(
    corpus, teacher, run, refused, tmp_path
):
    folder, _ = teacher
    model = build_model(read_config(folder / "best"), "masked_lm")
    save_model(model, tmp_path / "lm", tokenizer=load_tokenizer(folder / "best"))
    lines = pathlib.Path(corpus[1].removeprefix("--dev=")).read_text().splitlines(True)
    (tmp_path / "few.tsv").write_text("".join(lines[:9]))
    flags = [f"--input={tmp_path / 'few.tsv'}", "--copies=3", "--label=teacher"]
    flags += [f"--teacher_dir={folder / 'best'}", f"--output_dir={tmp_path / 'augmented'}"]
    error = refused("augment", f"--model_dir={folder / 'best'}", *flags)
    assert "head 'classifier', but --method=replace needs" in error
    error = refused("augment", f"--model_dir={tmp_path / 'lm'}", *flags, "--label=keep")
    assert "has no effect with --label=keep" in error
    done = run("augment", f"--model_dir={tmp_path / 'lm'}", *flags)
    assert re.search(r"Wrote .*augmented\.tsv: 8 examples and \d+ copies; left out", done.stderr)
    rows = (tmp_path / "augmented" / "augmented.tsv").read_text().splitlines()
    assert rows[0] == "sentence\tlabel" and 15 < len(rows) <= 33 and len(set(rows)) == len(rows)
    assert {row.split("\t")[1] for row in rows[1:]} <= {"negative", "positive"}
    done = run("augment", f"--model_dir={tmp_path / 'lm'}", *flags)
    assert "is complete" in done.stderr
