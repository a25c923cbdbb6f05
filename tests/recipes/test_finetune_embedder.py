"""Vectors are trained, kept and exported as a user does it."""

import json

import numpy as np
import pytest

from distill.runtime import TextEmbedder
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
    done = run("finetune_embedder", *flags, *how, "--epochs=60", "--learning_rate=5e-3")
    figures = json.loads((tmp_path / "run/figures.json").read_text())
    assert figures["dev_ndcg_10"] == pytest.approx(1)
    assert figures["dev_ndcg_10_at_4"] > 0.5 and "dev_baseline_ndcg_10" in figures
    settings = json.loads((tmp_path / "run/best/config_sentence_transformers.json").read_text())
    assert settings["prompts"] == {"query": "the "}
    best = f"--model_dir={tmp_path / 'run/best'}"
    texts = [text for pair in PAIRS for text in pair]
    model, file = (
        load_runner(tmp_path / "run/best"),
        TextEmbedder(float_file(tmp_path / "run/best")),
    )
    for prompt in (None, "query"):
        vectors = file.embed(texts, prompt=prompt)
        np.testing.assert_allclose(vectors, model.embed(texts, prompt=prompt), atol=1e-5)
    done = run("export_tflite", best, f"--output_dir={tmp_path / 'x'}", "--pooling=max", status=2)
    assert "first,mean" in done.stderr
    run("finetune_embedder", *flags, "--max_steps=1", "--overwrite")  # with its subfolders


def test_a_run_by_scores(run, flags, tmp_path):
    how = ["--loss=cosent", "--score_column=alike", "--epochs=8", "--learning_rate=5e-3"]
    run("finetune_embedder", *flags, *how)
    figures = json.loads((tmp_path / "run/figures.json").read_text())
    assert figures["dev_spearman"] == pytest.approx(1)
    done = run("finetune_embedder", *flags, "--loss=cosent", "--symmetric", status=2)
    assert "symmetric" in done.stderr
    done = run("finetune_embedder", *flags, "--adversarial_weight=1", "--overwrite", status=2)
    assert "adversarial_weight" in done.stderr
