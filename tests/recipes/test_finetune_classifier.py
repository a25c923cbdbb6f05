"""A classifier is trained, resumed and refused as a user sees it."""

import json
import pathlib
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
import safetensors.numpy

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
    done = run("finetune_classifier", *flags, "--num_heads=2", "--output_dir=a", status=2)
    assert "--num_heads=2 is no field of the family gru" in done.stderr


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
    table = safetensors.numpy.load_file(best / "model.safetensors")
    table = table["textcnn.embeddings.token_table"]
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
    weights = [
        safetensors.numpy.load_file(folder / "best" / "model.safetensors")
        for folder in (whole, broken)
    ]
    for name, value in weights[0].items():
        np.testing.assert_array_equal(value, weights[1][name])


def test_a_finished_run_is_not_trained_again(teacher, run):
    folder, flags = teacher
    before = (folder / "state.safetensors").stat().st_mtime_ns
    train = flags[0].replace("=/", "=./")  # the same file, as recipes run in /
    done = run("finetune_classifier", *flags, train, f"--output_dir={folder}")
    assert "is complete" in done.stderr
    assert (folder / "state.safetensors").stat().st_mtime_ns == before


def test_a_changed_training_file_is_noticed(teacher, corpus, run, tmp_path):
    folder, flags = teacher
    train, copy = tmp_path / "train.tsv", tmp_path / "copy"
    lines = pathlib.Path(corpus[0].removeprefix("--train=")).read_text().splitlines(True)
    train.write_text("".join(lines[:-1]))
    shutil.copytree(folder, copy)
    stored = json.loads((copy / "flags.json").read_text()) | {"train": str(train)}
    (copy / "flags.json").write_text(json.dumps(stored))
    before = (copy / "state.safetensors").read_bytes()
    flags = [*flags, f"--train={train}", f"--output_dir={copy}"]
    done = run("finetune_classifier", *flags, status=2)
    message = f"Error: {copy} was trained on other content of train ({train}) than is there now"
    assert done.stderr.splitlines()[-1].startswith(message)
    assert (copy / "state.safetensors").read_bytes() == before


def test_a_run_whose_loss_breaks_is_a_failure(teacher, run, tmp_path):
    flags = [*teacher[1], "--learning_rate=1e30", "--warmup_share=0", "--epochs=1"]
    done = run("finetune_classifier", *flags, f"--output_dir={tmp_path / 'run'}", status=2)
    lines = done.stderr.splitlines()
    assert lines[-1].startswith("Error: At step 2 of epoch 1 the loss is nan (nothing was saved")
    assert not any("best weights" in line for line in lines)
    left = [".lock", "bad_batch.npz", "events", "flags.json", "tokenizer"]
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == left
    flags = [*teacher[1], "--epochs=1", "--overwrite", f"--output_dir={tmp_path / 'run'}"]
    run("finetune_classifier", *flags)
    card = (tmp_path / "run" / "README.md").read_text()
    assert "| epochs | 1 |" in card and "| num_layers | 2 |" in card and "overwrite" not in card


def test_bad_input_is_one_sentence(teacher, corpus, run, tmp_path):
    folder, flags = teacher
    out, alike = f"--output_dir={tmp_path / 'a'}", tmp_path / "alike.tsv"
    alike.write_text("sentence\tlabel\na fine film\tpositive\na good film\tpositive\n")
    cases = [
        ([*flags, "--seed=1", f"--output_dir={folder}"], "there --seed is 0, here 1"),
        ([*flags, "--label_column=", out], "--label_column is empty; name a column, such as"),
        ([*flags, "--overwrite", f"--output_dir={folder.parent}"], "is not a run's folder"),
        ([*corpus, f"--model_dir={tmp_path}", out], "tokenizer.json is missing"),
        (
            [*flags, f"--train={alike}", "--labels=negative,positive", out],
            "All examples of --train have the label 'positive', so that",
        ),
    ]
    for number, (given, message) in enumerate(cases):
        done = run("finetune_classifier", *given, status=2, fresh=number == 0)
        line = done.stderr.splitlines()[-1]
        assert line.startswith("Error: ") and message in line
    assert not (tmp_path / "a").exists()


def test_a_run_has_a_card_and_curves(teacher):
    folder, _ = teacher
    figures = json.loads((folder / "figures.json").read_text())
    card = (folder / "README.md").read_text()
    assert f"| dev accuracy | {figures['dev_accuracy']:.4f} |" in card
    assert (folder / "curves.png").stat().st_size > 1000
