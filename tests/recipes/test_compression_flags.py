"""Recipes that make students smaller, as a user runs them."""

import json

import numpy as np
import pytest

from distill.compression.weight_pruning import sparsity
from tests.grammar_corpus import make_reviews, write_reviews
from tests.recipes.shell import Shell
from tfnlp.checkpoints import load_model, read_labels, read_pooler, save_model
from tfnlp.models import BertConfig, build_model
from tfnlp.text import load_tokenizer, read_examples, train_wordpiece


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    shell, folder = Shell(), tmp_path_factory.mktemp("shell")

    def run(recipe, *flags, status=0):
        done = shell.run(recipe, flags, folder)
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        return done

    yield run
    shell.close()


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """A folder of a random model, and the files of a corpus."""
    place = tmp_path_factory.mktemp("teacher")
    write_reviews(place, train=64, dev=16, test=16)
    tokenizer = train_wordpiece([text for text, _ in make_reviews(300)], 500)
    config = BertConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        num_layers=2,
        num_heads=4,
        hidden_dim=16,
        intermediate_dim=32,
    )
    model = build_model(config, "classifier", 2)
    save_model(model, place / "teacher", ["negative", "positive"], tokenizer, {"max_length": 48})
    return place


def test_a_vocabulary_is_pruned_to_a_file(teacher, run, tmp_path):
    flags = (f"--model_dir={teacher / 'teacher'}", f"--text={teacher / 'train.tsv'}")
    done = run("prune_vocabulary", *flags, f"--output_dir={tmp_path / 'all'}")
    figures = json.loads((tmp_path / "all" / "figures.json").read_text())
    assert figures["texts_with_other_tokens"] == [0.0]
    assert "Texts with other tokens: 0." in done.stderr
    before, after = figures["tokens"]
    assert figures["parameters"][0] - figures["parameters"][1] == 16 * (before - after)
    texts = [text for text, _ in make_reviews(96)][:8]
    folders = teacher / "teacher", tmp_path / "all"
    found = [load_model(f, "classifier")(load_tokenizer(f)(texts))["logits"] for f in folders]
    np.testing.assert_array_equal(*found)
    assert read_labels(tmp_path / "all") == ["negative", "positive"]
    few = (f"--output_dir={tmp_path / 'few'}", "--keep_tokens=4")
    done = run("prune_vocabulary", *flags, *few, status=2)
    assert done.stderr.startswith("Error: --keep_tokens=4 is below the 5 tokens that every text")


def test_a_pruned_language_model_keeps_its_pooler(teacher, run, tmp_path):
    config = load_model(teacher / "teacher", "classifier").text_config
    tokenizer, encoder = load_tokenizer(teacher / "teacher"), build_model(config)
    save_model(encoder, tmp_path / "encoder")
    pooler = read_pooler(tmp_path / "encoder")
    assert len(pooler) == 2
    save_model(build_model(config, "masked_lm"), tmp_path / "lm", None, tokenizer, pooler=pooler)
    flags = (f"--model_dir={tmp_path / 'lm'}", f"--text={teacher / 'train.tsv'}")
    run("prune_vocabulary", *flags, f"--output_dir={tmp_path / 'small'}")
    kept = read_pooler(tmp_path / "small")
    assert kept.keys() == pooler.keys()
    for name, tensor in pooler.items():
        np.testing.assert_array_equal(kept[name], tensor)


def test_a_student_of_fewer_tokens_heads_units_and_weights_in_one_call(teacher, run, tmp_path):
    flags = [f"--{name}={teacher / name}.tsv" for name in ("train", "dev")]
    flags += [f"--teacher_dir={teacher / 'teacher'}", "--num_layers=1", "--epochs=2"]
    flags += ["--keep_tokens=120", "--keep_heads=2", "--keep_units=12", f"--output_dir={tmp_path}"]
    # At a rate of 0 what is left of a start shows in the end.
    still = ("--learning_rate=0", "--teacher_precision=bfloat16")
    run("distill_classifier", *flags, *still, "--sparsity=0.5", "--sparsity_end_step=3")
    best = load_model(tmp_path / "best", "classifier")
    config = best.text_config
    assert (config.vocabulary_size, config.num_heads, config.head_dim) == (120, 2, 4)
    assert (config.num_layers, config.hidden_dim, config.intermediate_dim) == (1, 16, 12)
    assert load_tokenizer(tmp_path / "best").vocabulary_size == 120
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["sparsity"] == sparsity(best) == pytest.approx(0.5, abs=0.01)

    # The teacher is scored as it is, with all of its tokens.
    folder = teacher / "teacher"
    half = load_model(folder, "classifier", dtype="bfloat16")
    dev = read_examples(teacher / "dev.tsv", "sentence", None, "label", ["negative", "positive"])
    logits = np.asarray(half(load_tokenizer(folder)(dev.texts))["logits"])
    accuracy = np.mean(logits.argmax(1) == dev.labels)
    assert figures["teacher_dev_accuracy"] == pytest.approx(accuracy)
    assert figures["teacher_parameters"] == half.count_params()
    assert figures["pruned_teacher_parameters"] < half.count_params()
    assert figures["share_of_teacher"] == pytest.approx(figures["dev_accuracy"] / accuracy)
    # The student started from weights that bfloat16 had not rounded.
    whole, own = load_tokenizer(folder), load_tokenizer(tmp_path / "best")
    rows = [whole.token_id(own.token(i)) for i in range(120)]
    tables = [
        next(np.asarray(w) for w in model.weights if w.path == "embeddings/token_table")
        for model in (best, load_model(folder, "classifier"))
    ]
    np.testing.assert_array_equal(tables[0], tables[1][rows])

    done = run("distill_classifier", *flags, "--sparsity=0.5", "--clusters=4", status=2)
    assert done.stderr.startswith("Error: --clusters=4 has no effect beside --sparsity=0.5;")
    done = run("distill_classifier", *flags, "--sparsity_pattern=2:4", status=2)
    assert done.stderr.startswith("Error: --sparsity_pattern=2:4 has no effect without --spar")
    done = run("distill_classifier", *flags, "--hidden_dim=8", "--overwrite", status=2)
    assert "Error: --hidden_dim=8 has no effect beside --keep_heads=2, which starts" in done.stderr
    assert (tmp_path / "best").exists()
    start = [f"--student_dir={tmp_path / 'best'}", f"--output_dir={tmp_path / 'other'}"]
    flags = [flag for flag in flags if "keep_" not in flag and "layers" not in flag]
    done = run("distill_classifier", *flags, *start, "--noinitialize", status=2)
    assert done.stderr.startswith("Error: --initialize=false has no effect beside --student_dir=")
