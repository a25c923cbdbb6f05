"""Vectors are trained, kept and exported as a user does it."""

import json

import numpy as np
import pytest

from distill.runtime import TextEmbedder
from tests.recipes.refusals import check_refusals
from tfnlp.checkpoints import save_model
from tfnlp.models import build_model
from tfnlp.pipelines import load_runner

PAIRS = [("a fine film", "the good film"), ("the the a", "a the a"), ("film", "fine good")]


@pytest.fixture
def flags(one_layer, tokenizer, tmp_path):
    save_model(build_model(one_layer), tmp_path / "bert", None, tokenizer)
    for name in ("train", "dev"):
        rows = ["text\tother\talike"] + [f"{a}\t{b}\t{i}" for i, (a, b) in enumerate(PAIRS)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(rows))
    files = [f"--{name}={tmp_path / name}.tsv" for name in ("train", "dev")]
    files += [f"--model_dir={tmp_path / 'bert'}", f"--output_dir={tmp_path / 'run'}"]
    return [*files, "--text_columns=text,other", "--max_length=12"]


def test_a_run_ends_in_a_folder_and_a_file_with_its_vectors(run, float_file, flags, tmp_path):
    how = ["--pooling=first,mean", "--matryoshka_dims=16,4", "--query_prompt=the "]
    run("finetune_embedder", *flags, *how, "--epochs=60", "--learning_rate=5e-3")
    figures = json.loads((tmp_path / "run/figures.json").read_text())
    assert figures["dev_ndcg_10"] == pytest.approx(1)
    assert figures["dev_ndcg_10_at_4"] > 0.5 and "dev_baseline_ndcg_10" in figures
    best = tmp_path / "run/best"
    settings = json.loads((best / "config_sentence_transformers.json").read_text())
    assert settings["prompts"] == {"query": "the "}
    texts = [text for pair in PAIRS for text in pair]
    model, file = load_runner(best), TextEmbedder(float_file(best))
    for prompt in (None, "query"):
        vectors = file.embed(texts, prompt=prompt)
        np.testing.assert_allclose(vectors, model.embed(texts, prompt=prompt), atol=1e-5)
    model_dir = [f"--model_dir={best}", f"--output_dir={tmp_path / 'x'}"]
    check_refusals("export_tflite", model_dir, {"--pooling=max": "first,mean"})
    run("finetune_embedder", *flags, "--max_steps=1", "--overwrite")  # with its subfolders


def test_a_run_by_scores(run, flags, tmp_path):
    how = ["--loss=cosent", "--score_column=alike", "--epochs=8", "--learning_rate=5e-3"]
    run("finetune_embedder", *flags, *how)
    figures = json.loads((tmp_path / "run/figures.json").read_text())
    assert figures["dev_spearman"] == pytest.approx(1)


def test_bad_input_is_one_sentence(flags):
    cases = {"--loss=cosent --symmetric": "symmetric", "--adversarial_weight=1": "on vectors"}
    check_refusals("finetune_embedder", flags, cases)
