"""A student of a classifier, and what is said of flags that no student can have."""

import json
import shutil

import numpy as np

from tfnlp.baselines import WordVectors
from tfnlp.checkpoints import read_config
from tfnlp.text import load_tokenizer

SPLITS = ("train", "dev", "test")


def test_a_student_is_smaller_than_its_teacher(student, refused):
    folder, flags = student
    error = refused("distill_classifier", *flags[:-1], f"--output_dir={folder}")
    assert "there --cache_dir is 'given', here None" in error
    figures = json.loads((folder / "figures.json").read_text())
    assert figures["parameters"] < figures["teacher_parameters"]
    assert figures["share_of_teacher"] == figures["dev_accuracy"] / figures["teacher_dev_accuracy"]


def test_a_recurrent_student_learns_from_its_own_words(teacher, corpus, run, tmp_path):
    words = ["film", "plot", "fine", "dull"]
    WordVectors(words, np.random.default_rng(0).normal(size=(4, 8))).save(tmp_path / "vectors.txt")
    flags = [f"--teacher_dir={teacher[0] / 'best'}", *corpus, "--epochs=1", "--bidirectional"]
    flags += ["--family=lstm", "--num_layers=1", f"--embeddings={tmp_path}/vectors.txt"]
    done = run("distill_classifier", *flags, f"--output_dir={tmp_path}/run")
    assert "4 of " in done.stderr
    config = read_config(tmp_path / "run/best")
    assert (config.cell, config.hidden_dim, config.bidirectional) == ("lstm", 8, True)
    assert len(load_tokenizer(tmp_path / "run/best").vocabulary) == config.vocabulary_size


def test_bad_input_is_one_sentence(teacher, corpus, refused, tmp_path):
    endings, scores = tmp_path / "endings.tsv", tmp_path / "scores.tsv"
    endings.write_text("prompt\tchoice0\tchoice1\tlabel\na\tb\tc\t0\n")
    scores.write_text("sentence1\tsentence2\tscore\na\tb\t1.5\n")
    cases = [
        ("classifier", ["--num_layers=9"], "--layer_map=uniform must name one of the teacher's 2"),
        ("classifier", ["--layer_map=5", "--noinitialize"], "--layer_map=5 must name one of"),
        ("classifier", ["--method=pkd", "--cosine_weight=1"], "--cosine_weight=1.0 has no effect"),
        ("classifier", ["--labels=up,down"], "--labels=up,down are not the model's ("),
        ("classifier", ["--family=bag", "--method=tinybert"], "a bag, has no layers to compare"),
        ("chooser", [f"--{x}={endings}" for x in SPLITS], "the task needs the head 'chooser'"),
        ("regression", [f"--{x}={scores}" for x in SPLITS], "and 2 classes, but the task needs"),
    ]
    start = [f"--teacher_dir={teacher[0] / 'best'}", *corpus, f"--output_dir={tmp_path / 'a'}"]
    for task, given, message in cases:
        layers = [] if "--family=bag" in given else ["--num_layers=1"]
        assert message in refused(f"distill_{task}", *start, *layers, *given)
    assert not (tmp_path / "a").exists()


def test_classes_without_names_take_labels_or_the_numbers_of_the_file(
    teacher, corpus, run, tmp_path
):
    unnamed = tmp_path / "unnamed"
    shutil.copytree(teacher[0] / "best", unnamed)
    config = json.loads((unnamed / "config.json").read_text())
    config["id2label"] = {"0": "LABEL_0", "1": "LABEL_1"}
    (unnamed / "config.json").write_text(json.dumps(config))
    numbers = tmp_path / "numbers.tsv"
    numbers.write_text("sentence\tlabel\na fine film\t1\na dull film\t0\n")
    given = [f"--teacher_dir={unnamed}", *corpus, "--num_layers=9", f"--output_dir={tmp_path}/a"]
    done = run("distill_classifier", *given, status=2)
    assert "are negative, positive; give --labels" in done.stderr
    for named, names in (
        (["--labels=negative,positive"], "negative, positive"),
        ([f"--{x}={numbers}" for x in SPLITS], "0, 1"),
    ):
        done = run("distill_classifier", *given, *named, status=2)
        assert f"no names: {names} are taken for them, in this order." in done.stderr
        assert done.stderr.splitlines()[-1].startswith("Error: --layer_map=uniform must name")
    assert not (tmp_path / "a").exists()
