"""Vocabularies are pruned from the shell."""

import json

import numpy as np

from tests.grammar_corpus import make_reviews
from tfnlp.checkpoints import load_model, read_labels, read_pooler, save_model
from tfnlp.models import build_model
from tfnlp.text import load_tokenizer


def test_a_vocabulary_is_pruned_to_a_file(reviews_teacher, run, refused, tmp_path):
    text = f"--text={reviews_teacher / 'train.tsv'}"
    flags = (f"--model_dir={reviews_teacher / 'teacher'}", text)
    run("prune_vocabulary", *flags, f"--output_dir={tmp_path / 'all'}")
    figures = json.loads((tmp_path / "all" / "figures.json").read_text())
    assert figures["texts_with_other_tokens"] == [0.0]
    before, after = figures["tokens"]
    assert figures["parameters"][0] - figures["parameters"][1] == 16 * (before - after)
    texts = [text for text, _ in make_reviews(96)][:8]
    folders = reviews_teacher / "teacher", tmp_path / "all"
    found = [load_model(f, "classifier")(load_tokenizer(f)(texts))["logits"] for f in folders]
    np.testing.assert_array_equal(*found)
    assert read_labels(tmp_path / "all") == ["negative", "positive"]
    error = refused("prune_vocabulary", *flags, f"--output_dir={tmp_path}/few", "--keep_tokens=4")
    assert "--keep_tokens=4 is below the 5 tokens" in error
    error = refused("prune_vocabulary", *flags, f"--output_dir={tmp_path}/all")
    assert "config.json is there; give another folder" in error


def test_a_pruned_language_model_keeps_its_pooler(reviews_teacher, run, tmp_path):
    config = load_model(reviews_teacher / "teacher", "classifier").text_config
    tokenizer, encoder = load_tokenizer(reviews_teacher / "teacher"), build_model(config)
    save_model(encoder, tmp_path / "encoder")
    pooler = read_pooler(tmp_path / "encoder")
    assert len(pooler) == 2
    save_model(build_model(config, "masked_lm"), tmp_path / "lm", None, tokenizer, pooler=pooler)
    flags = (f"--model_dir={tmp_path / 'lm'}", f"--text={reviews_teacher / 'train.tsv'}")
    run("prune_vocabulary", *flags, f"--output_dir={tmp_path / 'small'}")
    kept = read_pooler(tmp_path / "small")
    assert kept.keys() == pooler.keys()
    for name, tensor in pooler.items():
        np.testing.assert_array_equal(kept[name], tensor)
