"""Texts are augmented from the shell."""

import pathlib
import re

from tfnlp.checkpoints import read_config, save_model
from tfnlp.models import build_model
from tfnlp.text import load_tokenizer


def test_texts_are_augmented_and_called_what_the_teacher_says(corpus, teacher, run, tmp_path):
    folder, _ = teacher
    config = read_config(folder / "best")
    tokenizer = load_tokenizer(folder / "best")
    model = build_model(config, "masked_lm")
    save_model(model, tmp_path / "lm", tokenizer=tokenizer)
    lines = pathlib.Path(corpus[1].removeprefix("--dev=")).read_text().splitlines(True)
    (tmp_path / "few.tsv").write_text("".join(lines[:9]))
    flags = [f"--input={tmp_path / 'few.tsv'}", "--copies=3", "--label=teacher"]
    flags += [f"--teacher_dir={folder / 'best'}", f"--output_dir={tmp_path / 'augmented'}"]
    done = run("augment", f"--model_dir={folder / 'best'}", *flags, status=2)
    assert (
        "holds a model with the head 'classifier', but --method=replace needs one" in done.stderr
    )
    done = run("augment", f"--model_dir={tmp_path / 'lm'}", *flags, "--label=keep", status=2)
    assert "has no effect with --label=keep; give" in done.stderr
    done = run("augment", f"--model_dir={tmp_path / 'lm'}", *flags)
    assert re.search(r"Wrote .*augmented\.tsv: 8 examples and \d+ copies; left out", done.stderr)
    rows = (tmp_path / "augmented" / "augmented.tsv").read_text().splitlines()
    assert rows[0] == "sentence\tlabel" and 15 < len(rows) <= 33 and len(set(rows)) == len(rows)
    assert {row.split("\t")[1] for row in rows[1:]} <= {"negative", "positive"}
    done = run("augment", f"--model_dir={tmp_path / 'lm'}", *flags)
    assert "is complete" in done.stderr
