"""Static vectors are made, trained and exported as a user does it."""

import json

import numpy as np
import pytest

from distill.runtime import TextEmbedder
from tests.recipes.refusals import check_refusals
from tfnlp.checkpoints import save_model
from tfnlp.models import build_model
from tfnlp.pipelines import load_runner

PAIRS = [("a fine film", "the good film"), ("the the a", "a the a"), ("film", "fine good")]


def test_vectors_of_a_teacher_learn_and_become_a_file(
    run, float_file, one_layer, tokenizer, tmp_path
):
    save_model(build_model(one_layer, "embedder"), tmp_path / "teacher", None, tokenizer)
    rows = ["text\tother", *("\t".join(pair) for pair in PAIRS)]
    (tmp_path / "pairs.tsv").write_text("\n".join(rows))
    made = [f"--teacher_dir={tmp_path / 'teacher'}", f"--output_dir={tmp_path / 'static'}"]
    text = [f"--text={tmp_path / 'pairs.tsv'}", "--text_column=text"]
    run("make_static_vectors", *made, *text, "--weights=sif", "--keep_tokens=70", "--dims=8")
    pairs = [f"--{name}={tmp_path / 'pairs.tsv'}" for name in ("train", "dev")]
    pairs += ["--text_columns=text,other", "--epochs=60", "--learning_rate=2e-2"]
    folders = [f"--model_dir={tmp_path / 'static'}", f"--output_dir={tmp_path / 'run'}"]
    run("finetune_embedder", *pairs, *folders)
    figures = json.loads((tmp_path / "run/figures.json").read_text())
    assert figures["dev_ndcg_10"] == pytest.approx(1)
    towards = [f"--teacher_dir={tmp_path / 'teacher'}", f"--student_dir={tmp_path / 'static'}"]
    towards += [f"--output_dir={tmp_path / 'distilled'}", "--soft_label_weight=0"]
    towards += ["--train_columns=text,other", "--max_length=48"]
    run("distill_embedder", *pairs, *towards)
    lines = (tmp_path / "distilled/metrics.jsonl").read_text().splitlines()
    losses = [json.loads(line)["similarity_loss"] for line in lines if "similarity_loss" in line]
    assert losses[-1] < losses[0] / 2
    best = tmp_path / "run/best"
    texts = [text for pair in PAIRS for text in pair] + ["film " * 600]
    expected = load_runner(best).embed(texts)
    np.testing.assert_allclose(TextEmbedder(float_file(best)).embed(texts), expected, atol=1e-5)


def test_bad_input_is_one_sentence(tmp_path):
    (tmp_path / "texts.txt").write_text("a fine film")
    flags = [f"--teacher_dir={tmp_path}", f"--output_dir={tmp_path / 'static'}"]
    cases = {f"--text={tmp_path / 'texts.txt'}": "--keep_tokens", "--weights=sif": "give --text"}
    check_refusals("make_static_vectors", flags, cases)
