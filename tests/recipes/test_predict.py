"""Predictions of folders as `transformers` writes them."""

import json

from tfnlp.checkpoints import save_model
from tfnlp.models import build_model


def test_two_classes_without_names_have_numbers(one_layer, tokenizer, run, tmp_path):
    """A config.json of `transformers` has no id2label then."""
    save_model(build_model(one_layer, "classifier", 2), tmp_path, None, tokenizer)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["id2label"], config["label2id"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "a.tsv").write_text("sentence\tlabel\na film\tLABEL_1\nfine\tLABEL_0\n")
    flags = [f"--model={tmp_path}", f"--input={tmp_path}/a.tsv", "--probabilities"]
    done = run("predict", *flags)
    header, *rows = (line.split("\t") for line in done.stdout.splitlines())
    assert header == ["label", "gold", "LABEL_0", "LABEL_1", "sentence"]
    assert [row[1] for row in rows] == ["LABEL_1", "LABEL_0"]
    for label, _, first, second, _ in rows:
        assert label == ("LABEL_1" if float(second) > float(first) else "LABEL_0")
    right = sum(row[0] == row[1] for row in rows)
    assert f"accuracy {right / 2:.4f} on 2 texts" in done.stderr
