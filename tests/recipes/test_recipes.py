"""The recipes as a user runs them: from the shell, in another folder."""

import dataclasses
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import safetensors.numpy

from distill.learning import make_student
from tests.grammar_corpus import make_reviews, write_reviews
from tests.recipes.shell import RECIPES, Shell
from tfnlp.checkpoints import load_model, read_config, save_model
from tfnlp.models import build_model
from tfnlp.text import load_tokenizer

SPLITS = ("train", "dev", "test")
SMALL = ["--num_layers=2", "--hidden_dim=32", "--num_heads=2", "--vocabulary_size=300"]


def command(recipe, *flags):
    return [sys.executable, str(RECIPES / f"{recipe}.py"), *map(str, flags)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a recipe: `run(recipe, *flags, status=0, fresh=False)`; `fresh` in a new Python."""
    shell, folder = Shell(), tmp_path_factory.mktemp("shell")

    def run(recipe, *flags, status=0, fresh=False):
        if fresh:
            done = subprocess.run(
                command(recipe, *flags), check=False, capture_output=True, text=True, cwd="/"
            )
        else:
            done = shell.run(recipe, flags, folder)
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr and "retracing" not in done.stderr
        return done

    yield run
    shell.close()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_reviews(folder, train=320, dev=64, test=64)
    return [f"--{name}={folder / name}.tsv" for name in ("train", "dev", "test")]


@pytest.fixture(scope="module")
def teacher(corpus, run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("teacher") / "run"
    flags = [*corpus, *SMALL, "--epochs=2", "--learning_rate=1e-3", "--checkpoint_steps=3"]
    run("finetune_classifier", *flags, f"--output_dir={folder}", fresh=True)
    return folder, flags


def test_a_recurrent_classifier_from_scratch_reads_both_ways(corpus, run, tmp_path):
    flags = [*corpus, "--family=gru", "--bidirectional", "--num_layers=1", "--hidden_dim=32"]
    flags += ["--vocabulary_size=300", "--learning_rate=1e-2", "--epochs=8", "--batch_size=16"]
    run("finetune_classifier", *flags, f"--output_dir={tmp_path}/run")
    losses = [json.loads(line)["loss"] for line in (tmp_path / "run/metrics.jsonl").open()]
    assert losses[0] > 0.6 and losses[-1] < 0.5
    config = read_config(tmp_path / "run/best")
    assert (config.cell, config.bidirectional, config.num_layers) == ("gru", True, 1)
    run("export_tflite", f"--model_dir={tmp_path}/run/best", f"--output_dir={tmp_path}/export")
    done = run("finetune_classifier", *flags, "--num_heads=2", "--output_dir=a", status=2)
    assert "--num_heads=2 is no field of the family gru" in done.stderr


def test_the_whole_road(corpus, teacher, run, tmp_path):
    folder, _ = teacher
    card = (folder / "README.md").read_text()
    figures = json.loads((folder / "figures.json").read_text())
    assert f"| dev accuracy | {figures['dev_accuracy']:.4f} |" in card
    assert (folder / "curves.png").stat().st_size > 1000

    student = tmp_path / "student"
    flags = [f"--teacher_dir={folder / 'best'}", *corpus, "--num_layers=1", "--epochs=1"]
    flags += ["--hidden_dim=16", "--hidden_state_weight=0.1", "--attention_weight=0.01"]
    flags += [f"--cache_dir={tmp_path / 'cache'}"]
    run("distill_classifier", *flags, f"--output_dir={student}")
    done = run("distill_classifier", *flags[:-1], f"--output_dir={student}", status=2)
    assert "there --cache_dir is 'given', here None" in done.stderr
    figures = json.loads((student / "figures.json").read_text())
    assert figures["parameters"] < figures["teacher_parameters"]
    assert figures["share_of_teacher"] == figures["dev_accuracy"] / figures["teacher_dev_accuracy"]

    flags = [f"--model_dir={student / 'best'}", f"--output_dir={tmp_path}"]
    done = run("export_tflite", *flags, "--beams=2", status=2)
    assert "--beams is not for a model with the head 'classifier'" in done.stderr
    (tmp_path / "golden.txt").write_text("the film is superb .\ndull\n")
    done = run("export_tflite", *flags, f"--golden={tmp_path / 'golden.txt'}")
    (sentence,) = re.findall(r"On 64 texts, compared with float32 Keras: .*", done.stderr)
    assert f"\n{sentence}\n" in (tmp_path / "model_card.md").read_text()
    golden = json.loads((tmp_path / "golden.json").read_text())
    assert [given["text"] for given in golden["inputs"]] == ["the film is superb .", "dull"]
    model = f"--model={tmp_path / 'model.tflite'}"

    long = run("predict", model, f"--text={'film ' * 200}", "--text=film")
    assert "1 of 2 texts were longer than the 128 tokens that are read of each." in long.stderr
    done = run("predict", model, "--text=the film is superb .", "--text=영화는 지루하다.")
    lines = done.stdout.splitlines()
    assert [line.split("\t")[2] for line in lines] == ["the film is superb .", "영화는 지루하다."]
    assert all(line.split("\t")[0] in ("negative", "positive") for line in lines)

    test = corpus[2].removeprefix("--test=")
    flags = [f"--input={test}", "--label_column=label", f"--output_dir={tmp_path / 'answers'}"]
    run("predict", model, *flags)
    summary = json.loads((tmp_path / "answers" / "summary.json").read_text())
    assert summary["accuracy"] == pytest.approx(figures["test_accuracy"], abs=0.05)

    flags = [f"--model_dir={student / 'best'}", f"--input={test}", "--repeats=3"]
    done = run("benchmark_tflite", model, *flags, f"--output_dir={tmp_path / 'benchmark'}")
    assert "On 64 texts, compared with float32 Keras: the same label in " in done.stdout
    figures = json.loads((tmp_path / "benchmark" / "benchmark.json").read_text())
    assert set(figures["latency_ms"]) == {"1", "2"}
    assert set(figures["latency_ms"]["1"]) == {"16", "32", "64", "128"}

    flags = [f"--input={test}", f"--teacher={folder / 'best'}", "--repeats=2"]
    done = run(
        "frontier", f"--models={tmp_path / 'model.tflite'}", *flags, f"--output_dir={tmp_path}/f"
    )
    header, row, _ = ((line.split("\t")) for line in (tmp_path / "f/frontier.tsv").open())
    found = dict(zip(header, row, strict=True))
    assert float(found["accuracy"]) == pytest.approx(summary["accuracy"], abs=1e-4)
    assert 0.3 < float(found["agreement"]) <= 1 and found["frontier\n"] == "size latency\n"
    assert "<svg" in (tmp_path / "f" / "frontier.html").read_text()


def test_a_file_of_pairs_is_exported_and_measured(run, tiny_config, tokenizer, tmp_path):
    config = dataclasses.replace(tiny_config, num_layers=1)
    settings = {"pairs": True, "max_length": 16}
    pairs = build_model(config, "classifier", 2)
    save_model(pairs, tmp_path / "pairs", ["no", "yes"], tokenizer, settings)
    save_model(build_model(config), tmp_path / "encoder", None, tokenizer)
    data = tmp_path / "pairs.tsv"
    data.write_text("sentence\tother\na fine film\tdull\nfilm\tnot dull\nthe plot\tfilm\n")
    out, files = f"--output_dir={tmp_path}", f"--model_dir={tmp_path / 'pairs'}"
    done = run("export_tflite", f"--model_dir={tmp_path / 'encoder'}", out, status=2)
    assert "has no export; give --pooling, such as --pooling='mean', for a file" in done.stderr
    check = [f"--check_text={data}", "--check_pair_column=other", "--check_count=2"]
    done = run("export_tflite", files, out, "--quantization=float32", *check)
    assert "On 2 texts, compared with float32 Keras: the same label in 100.00%." in done.stderr
    assert "The model was trained on pairs of texts, and MediaPipe takes single" in done.stderr
    measure = [f"--model={tmp_path / 'model.tflite'}", files, f"--input={data}", "--repeats=1"]
    done = run("benchmark_tflite", *measure, "--pair_column=other", out)
    assert "On 3 texts, compared with float32 Keras: the same label in 100.00%." in done.stdout
    figures = json.loads((tmp_path / "benchmark.json").read_text())
    assert figures["check"] == {"texts": 3, "agreement": 1.0}
    done = run("benchmark_tflite", *measure, out, status=2)
    assert "trained on pairs of texts, and single texts are given" in done.stderr
    done = run("export_tflite", files, out, f"--check_text={tmp_path}/none.tsv", status=2)
    assert "none.tsv does not exist; check the path." in done.stderr


def test_a_student_learns_from_texts_and_then_a_task(corpus, teacher, run, tmp_path):
    train, general = corpus[0].removeprefix("--train="), tmp_path / "general"
    flags = [f"--teacher_dir={teacher[0] / 'best'}", "--num_layers=1", "--hidden_dim=24"]
    flags += ["--num_heads=3", "--max_length=64", f"--texts={train}"]
    hidden = ("--whole_words", "--masked_share=0.15")
    run("distill_general", *flags, *hidden, f"--output_dir={general}")
    figures = json.loads((general / "figures.json").read_text())
    assert figures["texts"] == 320 and figures["parameters"] < figures["teacher_parameters"]
    losses = {key for key in figures if key.endswith("loss")}
    assert losses == {"loss", "embedding_loss", "hidden_state_loss", "attention_score_loss"}
    assert f"| texts | ['{train}'] |" in (general / "README.md").read_text()
    done = run("distill_general", *flags, *hidden, f"--output_dir={general}")
    assert "is complete" in done.stderr

    # The task stage starts from it, with its teacher's layers.
    fine, best = tmp_path / "fine", f"--student_dir={general / 'best'}"
    given = [flags[0], *corpus, best, "--epochs=1", "--max_length=64", "--attention_weight=0.1"]
    run("distill_classifier", *given, f"--output_dir={fine}")
    fine_figures = json.loads((fine / "figures.json").read_text())
    assert abs(fine_figures["parameters"] - figures["parameters"]) < 200  # the classifier
    done = run("distill_classifier", *given, "--num_layers=1", f"--output_dir={fine}x", status=2)
    assert "--num_layers=1 has no effect beside --student_dir=" in done.stderr
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    for wrong, message in [
        (["--method=distilbert"], "holds no masked language model, so it gives"),
        ([f"--texts={train},{empty}"], f"{empty} is empty; it needs at least one line"),
        (["--teacher_dir=a,b"], "a,b"),
    ]:
        done = run("distill_general", *flags, *wrong, f"--output_dir={tmp_path / 'a'}", status=2)
        (line,) = [x for x in done.stderr.splitlines() if x and "example" not in x]
        assert line.startswith("Error: ") and message in line
    assert not (tmp_path / "a").exists()


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


@pytest.mark.quick
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


def test_bad_input_is_one_sentence(teacher, corpus, run, tmp_path):
    folder, flags = teacher
    out = f"--output_dir={tmp_path / 'a'}"
    alike = tmp_path / "alike.tsv"
    alike.write_text("sentence\tlabel\na fine film\tpositive\na good film\tpositive\n")
    best = f"--teacher_dir={folder / 'best'}"
    finetune = [
        (["--seed=1", f"--output_dir={folder}"], "there --seed is 0, here 1"),
        (["--text_column=text", out], "has no column 'text'"),
        (["--labels=up,down", out], "is not one of the labels"),
        (["--label_column=", out], "--label_column is empty; name a column, such as label."),
        (["--overwrite", f"--output_dir={folder.parent}"], "is not a run's folder"),
    ]
    from_folder = [
        ([f"--model_dir={tmp_path}", out], "tokenizer.json is missing"),
        ([f"--model_dir={tmp_path}", "--num_layers=2", out], "--num_layers=2 has no effect"),
        ([f"--tokenizer_dir={folder / 'best'}", "--vocabulary_size=9999", out], "has its own"),
        (
            ["--family=bart", out],
            "--family=bart is unknown (did you mean bert or albert?); use one of bert, ",
        ),
        (["--size=huge", out], "--size=huge is unknown; use one of bert_base, bert_large, "),
        (["--block_size=0", out], "--block_size=0 must be a whole number, 1 or more"),
    ]
    distil = [
        (["--num_layers=9"], "layer_map=uniform must name one of the teacher's 2 layers"),
        (["--num_layers=1", "--layer_map=5", "--noinitialize"], "of the teacher's 2 layers"),
        (
            ["--num_layers=1", "--method=pkd", "--cosine_weight=1"],
            "--cosine_weight=1.0 has no effect with --method=pkd, which takes",
        ),
        (["--num_layers=1", "--labels=up,down"], "--labels=up,down are not the model's ("),
        (
            ["--num_layers=1", "--hidden_dim=15", "--num_heads=2"],
            "does not divide --hidden_dim=15",
        ),
    ]
    endings, scores = tmp_path / "endings.tsv", tmp_path / "scores.tsv"
    endings.write_text("prompt\tchoice0\tchoice1\tlabel\na\tb\tc\t0\n")
    scores.write_text("sentence1\tsentence2\tscore\na\tb\t1.5\n")
    wrong = [
        ("distill_tagger", endings, "the task needs the head 'tagger'"),
        ("distill_chooser", endings, "the task needs the head 'chooser'"),
        ("distill_regression", scores, "2 classes, but the task needs 'classifier' and a number"),
    ]
    cases = [("finetune_classifier", [*flags, *changed], m) for changed, m in finetune]
    cases += [("finetune_classifier", [*corpus, *changed], m) for changed, m in from_folder]
    files = "--train={0} --dev={0} --num_layers=1"
    cases += [(r, [best, *files.format(x).split(), out], m) for r, x, m in wrong]
    cases += [("distill_classifier", [best, *corpus, out, *changed], m) for changed, m in distil]
    for number, (recipe, given, message) in enumerate(cases):
        done = run(recipe, *given, status=2, fresh=number == 0)
        (line,) = [x for x in done.stderr.splitlines() if x]
        assert line.startswith("Error: ")
        assert message in line
    # Classes without names take --labels, or the numbers of --train; nothing is guessed.
    unnamed = tmp_path / "unnamed"
    shutil.copytree(folder / "best", unnamed)
    config = json.loads((unnamed / "config.json").read_text())
    config["id2label"] = {"0": "LABEL_0", "1": "LABEL_1"}
    (unnamed / "config.json").write_text(json.dumps(config))
    numbers = tmp_path / "numbers.tsv"
    numbers.write_text("sentence\tlabel\na fine film\t1\na dull film\t0\n")
    given = [f"--teacher_dir={unnamed}", *corpus, "--num_layers=9", out]
    done = run("distill_classifier", *given, status=2)
    assert "unnamed have no names, and those of --train=" in done.stderr
    assert "are negative, positive; give --labels, the names in the order of" in done.stderr
    for named in (["--labels=negative,positive"], [f"--{x}={numbers}" for x in SPLITS]):
        done = run("distill_classifier", *given, *named, status=2)
        names = "0, 1" if "labels" not in named[0] else "negative, positive"
        assert f"no names: {names} are taken for them, in this order." in done.stderr
        assert done.stderr.splitlines()[-1].startswith("Error: --layer_map=uniform must name one")
    given = [f"--train={alike}", "--labels=negative,positive", out]
    done = run("finetune_classifier", *flags, *given, status=2)
    message = "Error: All examples of --train have the label 'positive', so that"
    assert done.stderr.splitlines()[-1].startswith(message)
    assert not (tmp_path / "a").exists()


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


def test_grammar_corpus_is_balanced_and_without_repeats():
    reviews = make_reviews(2000)
    assert len({text for text, _ in reviews}) == 2000
    assert 900 < sum(label == "positive" for _, label in reviews) < 1100
    korean = sum(any("가" <= c <= "힣" for c in text) for text, _ in reviews)
    assert korean == 1000
    assert reviews == make_reviews(2000)


def test_other_tasks_from_the_shell_to_a_file_for_phones(teacher, run, tmp_path):
    from distill.runtime import QuestionAnswerer, TokenTagger

    answers = {"answers": [{"answer_start": 4, "text": "fine"}], "question": "what film ?"}
    questions = [{"id": str(i)} | answers for i in range(8)]
    squad = {"data": [{"paragraphs": [{"context": "the fine film", "qas": questions}]}]}
    # Most of the time is tracing, which goes by the layers.
    start = tmp_path / "start"
    model = make_student(load_model(teacher[0] / "best", "classifier"), 1)
    save_model(model, start, tokenizer=load_tokenizer(teacher[0] / "best"))
    files = {
        "finetune_tagger": ("a.conll", "the\tO\nfine\tB-x\nfilm\tI-x\n\n" * 8, 5),
        "finetune_answerer": ("a.json", json.dumps(squad), 16),
    }
    first = "--intermediate_epochs=1"
    methods = {
        "finetune_tagger": (
            ["--method=tinybert", first, "--family=distilbert"],
            "distilbert",
            ("intermediate/metrics.jsonl", "embedding"),
        ),
        "finetune_answerer": (
            ["--method=minilm_v2", "--relation_heads=2", "--size=bert_tiny"],
            "bert",
            ("metrics.jsonl", "key_relation"),
        ),
    }
    for recipe, (name, text, stride) in files.items():
        path, out = tmp_path / name, tmp_path / recipe
        path.write_text(text)
        flags = [f"--model_dir={start}", f"--train={path}", f"--dev={path}"]
        flags += ["--epochs=5", "--batch_size=2", "--learning_rate=5e-3", "--max_length=48"]
        flags += [f"--stride={stride}"]
        adversarial = ["--adversarial_weight=1"] if recipe == "finetune_tagger" else []
        run(recipe, *flags, *adversarial, f"--output_dir={out}")
        assert (out / "README.md").exists() and (out / "curves.png").exists()
        export = (f"--model_dir={out / 'best'}", f"--output_dir={out}")
        run("export_tflite", *export)
        # What calibrates is read as the task's files are.
        few = ("--quantization=static_int8", f"--calibration_text={path}")
        done = run("export_tflite", *export, *few, status=2)
        assert "--calibration_text holds 8 texts, but at least 16 are needed" in done.stderr
        question = ["--question=what film ?"] if recipe == "finetune_answerer" else []
        expected = {
            "finetune_tagger": ["x", "fine", "film", "the", "fine", "film"],
            "finetune_answerer": ["fine", "what", "film", "?"],
        }
        if recipe == "finetune_tagger":  # the words of a tagger's file are its texts
            small = (f"--model_dir={out / 'best'}", f"--text={path}", f"--output_dir={out}/small")
            run("prune_vocabulary", *small)
            figures = json.loads((out / "small/figures.json").read_text())
            assert figures["texts_with_other_tokens"] == [0.0] and figures["tokens"][1] < 80
        probabilities = []
        for model in (out / "best", out / "model.tflite"):
            done = run("predict", f"--model={model}", "--text=the fine film", *question)
            label, probability, *rest = done.stdout.replace("\t", " ").split()
            assert [label, *rest] == expected[recipe]
            probabilities.append(float(probability))
        assert probabilities[0] == pytest.approx(probabilities[1], abs=0.2)
        student = out / "student"
        flags = [f"--teacher_dir={out / 'best'}", f"--train={path}", f"--dev={path}"]
        flags += ["--num_layers=1", "--epochs=1", "--max_length=48", f"--output_dir={student}"]
        own, family, shown = methods[recipe]
        run(recipe.replace("finetune", "distill"), *flags, *own)
        assert json.loads((student / "best/config.json").read_text())["model_type"] == family
        (metrics,) = (student / shown[0]).read_text().splitlines()
        assert f"{shown[1]}_loss" in json.loads(metrics)
        figures = [json.loads((f / "figures.json").read_text()) for f in (out, student)]
        assert figures[1]["teacher_dev_f1"] == figures[0]["dev_f1"] == 1
        assert figures[1]["share_of_teacher"] == figures[1]["dev_f1"]
    done = run("predict", f"--model={out / 'best'}", f"--input={path}")
    assert "exact_match 1.0000 on 8 texts" in done.stderr
    tagger = TokenTagger(tmp_path / "finetune_tagger" / "model.tflite")
    assert tagger.tag(["the fine film"]) == [[("the", "O"), ("fine", "B-x"), ("film", "I-x")]]
    answerer = QuestionAnswerer(tmp_path / "finetune_answerer" / "model.tflite")
    read = {"max_length": 48, "stride": 16}
    settings = read | {"max_question_length": 64, "null_answers": False, "pairs": True}
    assert answerer.settings == settings and answerer.max_length == 48
    words = {"prefixes": [], "suffixes": [], "whole": []}
    assert tagger.settings == {"max_length": 48, "stride": 5, "unit": "word", "words": words}
    found = answerer.answer("what film ?", "the fine film")[0]
    assert (found.text, found.start, found.end) == ("fine", 4, 8)
    folder = tmp_path / "finetune_answerer"
    n_best, of_student = (
        json.loads((run_folder / "n_best.json").read_text())
        for run_folder in (folder, folder / "student")
    )
    assert list(n_best) == list(of_student) == [str(i) for i in range(8)]
    right = [answers[0]["text"] == "fine" for answers in of_student.values()]
    figures = json.loads((folder / "student" / "figures.json").read_text())
    assert np.mean(right) == figures["dev_exact_match"]
    for best, *others in n_best.values():
        assert best["text"] == "fine" and (best["start"], best["end"]) == (4, 8)
        assert best["score"] == pytest.approx(found.score, abs=0.2)
        assert all(other["score"] <= best["score"] for other in others)


def test_texts_are_scored_from_the_shell(run, tmp_path):
    due, written = tmp_path / "due.txt", tmp_path / "written.tsv"
    due.write_text("a film to see\n정말 좋아요\n")
    written.write_text("text\na film to see\n\n")
    flags = [f"--references={due}", f"--hypotheses={written}"]
    done = run("score_text", *flags, f"--output={tmp_path / 's.json'}")
    assert re.search(r"^rouge1 +0\.5000$", done.stdout, re.M)
    scores = json.loads((tmp_path / "s.json").read_text())
    assert scores["word_precision"] == 1 and scores["word_recall"] == 4 / 6
    due.write_text("a film to see\n")
    done = run("score_text", *flags, status=2)
    assert "hypotheses holds 2 texts and references 1" in done.stderr


def test_features_and_tokenizers_from_the_shell(teacher, corpus, run, tmp_path):
    texts = corpus[1].removeprefix("--dev=")
    flags = [f"--model_dir={teacher[0] / 'best'}", f"--input={texts}"]
    run("extract_features", *flags, f"--output={tmp_path / 'f.npz'}")
    assert np.load(tmp_path / "f.npz")["features"].shape == (64, 32)
    # A masked LM has no pooler, and needs none.
    best = teacher[0] / "best"
    model = build_model(read_config(best), "masked_lm")
    save_model(model, tmp_path / "lm", tokenizer=load_tokenizer(best))
    done = run(
        *("extract_features", f"--model_dir={tmp_path / 'lm'}", flags[1]),
        f"--output={tmp_path / 'f.npz'}",
    )
    assert "random" not in done.stderr
    nowhere = ["--model_dir=/nowhere", flags[1]]  # told before a model is looked for
    done = run("extract_features", *nowhere, f"--output={tmp_path / 'f.txt'}", status=2)
    assert "must end in .npz or .parquet" in done.stderr
    config = tmp_path / "t" / "config.json"
    config.parent.mkdir()
    config.write_text('{"model_type": "bert", "hidden_size": 32}')
    flags = [f"--input={texts}", "--vocabulary_size=320", f"--output_dir={tmp_path / 't'}"]
    done = run("train_tokenizer", "--kind=bpe", *flags, status=2)
    assert "the model is of the family 'bert' and the tokenizer one for 'roberta'" in done.stderr
    done = run("train_tokenizer", *flags, f"--dev={texts}")
    found = [line.partition(" ")[2] for line in done.stderr.splitlines() if "unknown" in line]
    assert len(found) == 2 and found[0] == found[1]
    assert json.loads(config.read_text()) == {"model_type": "bert", "hidden_size": 32}
    config.unlink()
    for kind in ("bpe", "unigram"):
        run("train_tokenizer", f"--kind={kind}", *flags)
        loaded = load_tokenizer(config.parent)
        assert loaded.vocabulary_size <= 320
        assert loaded.family == {"bpe": "roberta", "unigram": "albert"}[kind]


def test_any_family_from_scratch_with_its_own_kind_of_tokenizer(run, tmp_path):
    """A tagger learns its vocabulary; an answerer in blocks takes one from a folder."""
    from tfnlp.checkpoints import read_config
    from tfnlp.text import load_tokenizer

    words = tmp_path / "a.conll"
    words.write_text("the\tO\nfine\tB-x\nfilm\tI-x\n\na\tO\ndull\tB-y\nplot\tO\n\n" * 8)
    answers = {"answers": [{"answer_start": 4, "text": "fine"}], "question": "what film ?"}
    questions = [{"id": str(i)} | answers for i in range(8)]
    squad = {"data": [{"paragraphs": [{"context": "the fine film", "qas": questions}]}]}
    asked, texts, pieces = (tmp_path / name for name in ("a.json", "a.txt", "pieces"))
    asked.write_text(json.dumps(squad))
    texts.write_text("the fine film\nwhat film ?\n" * 8)
    small = ["--num_layers=1", "--num_heads=2", "--hidden_dim=16", "--max_length=48"]
    small += ["--epochs=2", "--batch_size=8"]

    out = tmp_path / "tagger"
    flags = [f"--train={words}", f"--dev={words}", f"--output_dir={out}", *small]
    run("finetune_tagger", *flags, "--family=deberta_v3", "--vocabulary_size=40")
    config = read_config(out / "best")
    assert (config.num_layers, config.hidden_dim, config.intermediate_dim) == (1, 16, 64)
    tokenizer = load_tokenizer(out / "best")
    assert (tokenizer.family, config.vocabulary_size) == ("deberta-v2", tokenizer.vocabulary_size)
    card = (out / "README.md").read_text()
    for line in ("| family | deberta-v2 |", "| num_buckets | 256 |", "| intermediate_dim | 64 |"):
        assert line in card.splitlines()

    flags = [f"--input={texts}", "--kind=unigram", "--family=xlnet", "--vocabulary_size=40"]
    run("train_tokenizer", *flags, f"--output_dir={pieces}")
    out = tmp_path / "answerer"
    flags = [f"--train={asked}", f"--dev={asked}", f"--tokenizer_dir={pieces}", *small]
    flags += [f"--output_dir={out}", "--block_size=8"]
    done = run("finetune_answerer", *flags, "--size=deberta_v3_small", status=2)
    assert "holds a tokenizer for xlnet, but the model is a deberta-v2" in done.stderr
    run("finetune_answerer", *flags, "--family=xlnet")
    tokenizers = load_tokenizer(out / "best"), load_tokenizer(pieces)
    assert len({str(t.tokens("what fine film")) for t in tokenizers}) == 1
    assert "block" not in (out / "best" / "config.json").read_text()
    # The whole model has the answers that it had in blocks.
    again = tmp_path / "again"
    flags = [f"--model_dir={out / 'best'}", f"--train={asked}", f"--dev={asked}"]
    flags += ["--learning_rate=0", "--epochs=1", f"--output_dir={again}"]
    run("finetune_answerer", *flags, "--max_length=48")
    n_best = [json.loads((f / "n_best.json").read_text())["0"][0]["score"] for f in (out, again)]
    assert n_best[0] == pytest.approx(n_best[1], abs=1e-4)


def test_texts_are_augmented_and_called_what_the_teacher_says(corpus, teacher, run, tmp_path):
    folder, _ = teacher
    config = read_config(folder / "best")
    tokenizer = load_tokenizer(folder / "best")
    model = build_model(config, "masked_lm")
    save_model(model, tmp_path / "lm", tokenizer=tokenizer)
    lines = pathlib.Path(corpus[1].removeprefix("--dev=")).read_text().splitlines(True)
    (tmp_path / "few.tsv").write_text("".join(lines[:9]))
    flags = [f"--input={tmp_path / 'few.tsv'}", "--copies=3", "--label=teacher"]
    flags += [f"--teacher_dir={folder / 'best'}", f"--output_dir={tmp_path / 'augmented'}"]
    done = run("augment", f"--model_dir={folder / 'best'}", *flags, status=2)
    assert (
        "holds a model with the head 'classifier', but --method=replace needs one" in done.stderr
    )
    done = run("augment", f"--model_dir={tmp_path / 'lm'}", *flags, "--label=keep", status=2)
    assert "has no effect with --label=keep; give" in done.stderr
    done = run("augment", f"--model_dir={tmp_path / 'lm'}", *flags)
    assert re.search(r"Wrote .*augmented\.tsv: 8 examples and \d+ copies; left out", done.stderr)
    rows = (tmp_path / "augmented" / "augmented.tsv").read_text().splitlines()
    assert rows[0] == "sentence\tlabel" and 15 < len(rows) <= 33 and len(set(rows)) == len(rows)
    assert {row.split("\t")[1] for row in rows[1:]} <= {"negative", "positive"}
    done = run("augment", f"--model_dir={tmp_path / 'lm'}", *flags)
    assert "is complete" in done.stderr
