"""Recipes that make students smaller, as a user runs them."""

import json

import numpy as np
import pytest

from distill.compression.vocabulary_pruning import compare_tokenizers
from distill.compression.weight_pruning import sparsity
from tfnlp.checkpoints import load_model
from tfnlp.text import load_tokenizer, read_examples


def test_a_student_of_fewer_tokens_heads_units_and_weights_in_one_call(
    reviews_teacher, run, refused, tmp_path
):
    flags = [f"--{name}={reviews_teacher / name}.tsv" for name in ("train", "dev")]
    flags += [f"--teacher_dir={reviews_teacher / 'teacher'}", "--num_layers=1", "--epochs=2"]
    flags += ["--keep_tokens=120", "--keep_heads=2", "--keep_units=12", f"--output_dir={tmp_path}"]
    # At a rate of 0 what is left of a start shows in the end.
    still = ("--learning_rate=0", "--teacher_precision=bfloat16")
    more = ("--sparsity=0.5", "--sparsity_end_step=3")
    log = run("distill_classifier", *flags, *still, *more).stderr
    best = load_model(tmp_path / "best", "classifier")
    config = best.text_config
    assert (config.vocabulary_size, config.num_heads, config.head_dim) == (120, 2, 4)
    assert (config.num_layers, config.hidden_dim, config.intermediate_dim) == (1, 16, 12)
    assert load_tokenizer(tmp_path / "best").vocabulary_size == 120
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["sparsity"] == sparsity(best) == pytest.approx(0.5, abs=0.01)

    # The teacher is scored as it is, with all of its tokens.
    folder = reviews_teacher / "teacher"
    half = load_model(folder, "classifier", dtype="bfloat16")
    dev = read_examples(reviews_teacher / "dev.tsv", label_names=["negative", "positive"])
    logits = np.asarray(half(load_tokenizer(folder)(dev.texts))["logits"])
    accuracy = np.mean(logits.argmax(1) == dev.labels)
    assert figures["teacher_dev_accuracy"] == pytest.approx(accuracy)
    assert figures["teacher_parameters"] == half.count_params()
    assert figures["pruned_teacher_parameters"] < half.count_params()
    assert figures["share_of_teacher"] == pytest.approx(figures["dev_accuracy"] / accuracy)
    # The student started from weights that bfloat16 had not rounded.
    whole, own = load_tokenizer(folder), load_tokenizer(tmp_path / "best")
    rows = [whole.token_id(own.token(i)) for i in range(120)]
    # The log tells whom the 120 tokens do not serve.
    changed = compare_tokenizers(whole, own, dev.texts)["texts_with_other_tokens"][0]
    assert f"{100 * changed:.2f} % of those of --dev" in log
    tables = [
        next(np.asarray(w) for w in model.weights if w.path == "embeddings/token_table")
        for model in (best, load_model(folder, "classifier"))
    ]
    np.testing.assert_array_equal(tables[0], tables[1][rows])

    for wrong, beside in (
        (["--clusters=4", "--sparsity=0.5"], "beside --sparsity"),
        (["--sparsity_pattern=2:4"], "without --sparsity"),
        (["--hidden_dim=8", "--overwrite"], "beside --keep_heads"),
    ):
        error = refused("distill_classifier", *flags, *wrong)
        assert f"{wrong[0]} has no effect {beside}" in error
    assert (tmp_path / "best").exists()
    start = [f"--student_dir={tmp_path / 'best'}", f"--output_dir={tmp_path / 'other'}"]
    flags = [flag for flag in flags if "keep_" not in flag and "layers" not in flag]
    error = refused("distill_classifier", *flags, *start, "--noinitialize")
    assert "--initialize=false has no effect beside --student_dir=" in error
