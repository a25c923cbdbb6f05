"""`find_student` and `measure_students` as a user runs them."""

import json
import re

import numpy as np
import pytest

from distill.runtime import load_runner
from tests.models.small import sizes
from tfnlp.checkpoints import read_config, save_model
from tfnlp.models import BertConfig, build_model

SPACE = ["--intermediate_dim=32,64,128", "--keep_tokens=150,300", "--max_length=32", "--tokens=16"]
SMALL_BATCHES = "--batch_size=16"  # so that TensorFlow does not warn of retracing


@pytest.fixture(scope="module")
def flags(teacher, corpus):
    return [f"--teacher_dir={teacher[0] / 'best'}", *corpus, *SPACE]


@pytest.fixture(scope="module")
def order(run, flags, tmp_path_factory):
    """The folder of a search within a size, its flags, and what it printed."""
    folder = tmp_path_factory.mktemp("order") / "order"
    whole = [*flags, "--quick", SMALL_BATCHES, "--candidates=6", f"--output_dir={folder}"]
    done = run("find_student", *whole, "--size_mb=0.5")
    return folder, whole, done.stdout


def test_the_winner_is_within_the_budget(order):
    folder, _, printed = order
    tried = [
        json.loads(line) for line in next(folder.glob("tried_*.jsonl")).read_text().splitlines()
    ]
    found = json.loads((folder / "search.json").read_text())
    assert len(tried) == 6 and all(x["size_mb"] <= 0.5 for x in tried)
    assert found["student"]["score"] == max(x["score"] for x in tried)
    assert found["measured"]["size_mb"] == pytest.approx(found["student"]["size_mb"], rel=0.1)
    runner = load_runner(found["file"])
    assert runner.classify(["a fine film"])[0].label in runner.labels
    student, (path,) = found["student"]["student"], (folder / "students").iterdir()
    config = read_config(path / "best")
    assert config.num_layers == len(student["layers"])
    assert config.intermediate_dim == student["intermediate_dim"]
    assert runner.tokenizer.vocabulary_size == student["vocabulary_size"]
    assert f"{found['figures']['test_accuracy']:.4f} on test" in printed
    assert (folder / "search.html").read_text().count("<svg") == 2


def test_the_winner_is_distilled_with_other_settings(order, flags, run, tmp_path):
    folder, _, _ = order
    (start,) = (folder / "starts").iterdir()
    files = [x for x in flags if re.match("--(teacher_dir|train|dev|max_length)", x)]
    still = ["--learning_rate=0", "--epochs=1", f"--output_dir={tmp_path / 'x'}"]
    run("distill_classifier", *files, f"--student_dir={start}", SMALL_BATCHES, *still)
    accuracy = json.loads((tmp_path / "x" / "figures.json").read_text())["dev_accuracy"]
    score = json.loads((folder / "search.json").read_text())["student"]["score"]
    assert accuracy == pytest.approx(score, abs=1e-6)


def test_another_budget_takes_the_same_supernet(order, run):
    folder, flags, _ = order
    state = (folder / "supernet" / "state.safetensors").read_bytes()
    run("find_student", *flags, "--size_mb=0.45", "--candidates=3")
    assert (folder / "supernet" / "state.safetensors").read_bytes() == state
    assert json.loads((folder / "search.json").read_text())["student"]["size_mb"] <= 0.45


def test_another_seed_is_refused_before_long_work(order, run):
    lines = run("find_student", *order[1], "--size_mb=0.5", "--seed=9", status=2).stderr
    assert "seed" in lines.splitlines()[-1] and "Step 1" not in lines


def test_a_search_is_overwritten_with_its_files(order, run):
    folder, flags, _ = order
    kept = {*(folder / "students").iterdir()}
    run("find_student", *flags, "--size_mb=0.5", "--overwrite", "--quantization=float32")
    assert {*(folder / "students").iterdir()} >= kept
    sizes = json.loads((folder / "search.json").read_text())
    assert sizes["measured"]["size_mb"] == pytest.approx(sizes["student"]["size_mb"], rel=0.1)


def test_times_of_a_phone_decide(order, run, refused, flags, tmp_path):
    folder, whole, _ = order
    flags = [*flags, "--size_mb=0.5", "--fixed_lengths=16"]
    texts = [flag for flag in flags if not flag.startswith("--dev=")]
    run("measure_students", *texts, "--fixed_only", f"--output_dir={tmp_path}")
    files, logs = sorted((tmp_path / "costs").glob("*.tflite")), tmp_path / "logs"
    logs.mkdir()
    for file in files:
        layers, _, units, *_ = map(int, re.findall(r"\d+", file.stem))
        (logs / f"{file.stem}.txt").write_text(f"Inference (avg): {layers * units * 1000}")
    phone = f"{tmp_path}/phone"
    copied = [*flags, f"--output_dir={phone}", f"--results={logs}", "--device=A phone"]
    assert "fixed_only" in refused("measure_students", *copied)
    log = logs / f"{files[0].stem}.txt"
    log.write_text(f"input model file size (MB): 1.5\n{log.read_text()}")
    assert "1.5" in refused("measure_students", *copied, "--fixed_only")
    log.write_text(log.read_text().replace("1.5", f"{files[0].stat().st_size / 1e6}"))
    run("measure_students", *copied, "--fixed_only")
    table = f"--cost_table={phone}/costs/costs.tsv"
    run("find_student", *whole, table, "--latency_ms=40", "--candidates=3")
    found = json.loads((folder / "search.json").read_text())["student"]
    assert len(found["student"]["layers"]) == 1 and found["student"]["intermediate_dim"] == 32
    np.testing.assert_allclose(found["latency_ms"], 32, rtol=1e-3)
    line = refused("find_student", *whole, table, "--latency_ms=1")
    assert "nearest" in line and "32 units" in line
    line = refused("find_student", *whole, table, "--latency_ms=40", "--quantization=float32")
    assert "quantization" in line


def test_flags_without_effect_are_refused(flags, refused, tmp_path):
    flags = [*flags, f"--output_dir={tmp_path / 'x'}"]
    assert "budget" in refused("find_student", *flags)
    assert "strategy" in refused("find_student", *flags, "--size_mb=1", "--strategy=mirrored")
    recompute = ("--size_mb=1", "--gradient_checkpointing")
    assert "gradient_checkpointing" in refused("find_student", *flags, *recompute)
    steps = ("--size_mb=1", "--max_steps=9", "--supernet_epochs=1")
    assert "supernet_epochs=1 has no effect beside" in refused("find_student", *flags, *steps)
    assert "no.tsv does not" in refused("find_student", *flags, "--cost_table=no.tsv")
    line = refused("measure_students", *flags, "--tokens=33")
    assert "--tokens=33" in line and "--max_length=32" in line
    short = ("--fixed_lengths=8,15", "--fixed_only")
    assert "--fixed_lengths=15" in refused("measure_students", *flags, *short)


def test_single_texts_for_a_teacher_of_pairs_are_refused(tokenizer, refused, corpus, tmp_path):
    config = BertConfig(**sizes(vocabulary_size=tokenizer.vocabulary_size))
    names = ["negative", "positive"]
    save_model(build_model(config, "classifier", 2), tmp_path, names, tokenizer, {"pairs": True})
    flags = [f"--teacher_dir={tmp_path}", *corpus, f"--output_dir={tmp_path / 'x'}"]
    for recipe in ("find_student", "measure_students"):
        assert "pair_column" in refused(recipe, *flags, "--size_mb=1")


def test_files_and_parts_of_batches_not_for_an_embedder_are_refused(
    tokenizer, refused, corpus, tmp_path
):
    config = BertConfig(**sizes(vocabulary_size=tokenizer.vocabulary_size))
    save_model(build_model(config, "embedder"), tmp_path, None, tokenizer)
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\na film\tfine\nnot\tdull\n")
    flags = [f"--teacher_dir={tmp_path}", "--latency_ms=1", f"--output_dir={tmp_path / 'x'}"]
    line = refused("find_student", *flags, *corpus)
    assert "gives sentence vectors, but" in line and "no column 'sentence1'" in line
    flags += [f"--{split}={tmp_path / 'pairs.tsv'}" for split in ("train", "dev")]
    line = refused("find_student", *flags, "--batch_size=4", "--accumulation_steps=2")
    assert "accumulation_steps=2" in line
