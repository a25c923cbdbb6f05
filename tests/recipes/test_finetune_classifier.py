"""A classifier is trained, resumed and refused as a user sees it."""

import json
import signal
import subprocess
import time

import numpy as np
import pytest

from tests.checkpoints.stored_tensors import tensors_of
from tests.recipes.processes import command
from tfnlp.baselines import WordVectors
from tfnlp.checkpoints import read_config
from tfnlp.text import load_tokenizer


def test_a_recurrent_classifier_from_scratch_reads_both_ways(corpus, run, tmp_path):
    flags = [*corpus, "--family=gru", "--bidirectional", "--num_layers=1", "--hidden_dim=32"]
    flags += ["--vocabulary_size=300", "--learning_rate=1e-2", "--epochs=8", "--batch_size=16"]
    seen = f"--further_dev=seen={corpus[0].removeprefix('--train=')}"
    run("finetune_classifier", *flags, seen, f"--output_dir={tmp_path}/run")
    metrics = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open()]
    losses = [epoch["loss"] for epoch in metrics]
    assert metrics[-1]["val_seen/loss"] < losses[-1] and metrics[-1]["val_accuracy"] > 0.5
    figures = json.loads((tmp_path / "run/figures.json").read_text())
    assert figures["dev_seen/accuracy"] > figures["dev_seen/baseline_accuracy"]
    assert losses[0] > 0.6 and losses[-1] < 0.5
    config = read_config(tmp_path / "run/best")
    assert (config.cell, config.bidirectional, config.num_layers) == ("gru", True, 1)
    run("export_tflite", f"--model_dir={tmp_path}/run/best", f"--output_dir={tmp_path}/export")


def test_a_convolutional_network_starts_from_word_vectors_and_keeps_them(corpus, run, tmp_path):
    # Words of the reviews, and one that BERT's tokenizer would split.
    words = ["film", "plot", "fine", "dull", "don't"]
    vectors = WordVectors(words, np.random.default_rng(0).normal(size=(5, 8)))
    vectors.save(tmp_path / "vectors.bin")
    flags = [*corpus, "--family=textcnn", "--channels=static", "--learning_rate=1e-2"]
    flags += [f"--embeddings={tmp_path}/vectors.bin", "--epochs=2", "--max_length=32"]
    done = run("finetune_classifier", *flags, f"--output_dir={tmp_path}/run")
    assert "4 of " in done.stderr and "% of all tokens of the training texts" in done.stderr
    best = tmp_path / "run/best"
    tokenizer, config = load_tokenizer(best), read_config(best)
    assert (config.channels, config.hidden_dim) == ("static", 8)
    table = tensors_of(best)["textcnn.embeddings.token_table"]
    for word in words[:4]:
        np.testing.assert_array_equal(table[tokenizer.token_id(word)], vectors[word])
    assert "don't" not in tokenizer.vocabulary
    run("export_tflite", f"--model_dir={best}", f"--output_dir={tmp_path}/export")
    done = run("predict", f"--model={tmp_path}/export/model.tflite", "--text=a fine film")
    assert "positive" in done.stdout or "negative" in done.stdout


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_resumes_to_the_same_weights(how, teacher, run, tmp_path):
    whole, flags = teacher
    broken = tmp_path / "broken"
    flags = [*flags, f"--output_dir={broken}"]
    process = subprocess.Popen(
        command("finetune_classifier", *flags), stderr=subprocess.DEVNULL, cwd="/"
    )
    while not (broken / "state.safetensors").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(how)
    assert process.wait() == (130 if how == signal.SIGINT else -signal.SIGKILL)
    done = run("finetune_classifier", *flags)
    assert "Resuming" in done.stderr
    weights = [tensors_of(folder / "best") for folder in (whole, broken)]
    for name, value in weights[0].items():
        np.testing.assert_array_equal(value, weights[1][name])


def test_bad_input_is_one_sentence(teacher, corpus, refused, tmp_path):
    folder, flags = teacher
    out, alike = f"--output_dir={tmp_path / 'a'}", tmp_path / "alike.tsv"
    alike.write_text("sentence\tlabel\na fine film\tpositive\na good film\tpositive\n")
    labels = f"--train={alike}", "--labels=negative,positive"
    for given, message in (
        ([*flags, "--seed=1", f"--output_dir={folder}"], "there --seed is 0, here 1"),
        ([*flags, "--label_column=", out], "--label_column is empty"),
        ([*flags, "--overwrite", f"--output_dir={folder.parent}"], "is not a run's folder"),
        ([*corpus, f"--model_dir={tmp_path}", out], "tokenizer.json is missing"),
        ([*flags, *labels, out], "examples of --train have the label 'positive'"),
        ([*flags, labels[0], out], f"--train={alike} has one label alone, 'positive'"),
        ([*flags, "--output_dir=/proc/none/run"], "/proc takes no files"),
    ):
        assert message in refused("finetune_classifier", *given)
    assert not (tmp_path / "a").exists()
