"""Other tasks and families, from the shell to a file for phones."""

import json

import numpy as np
import pytest

from distill.learning import make_student
from distill.runtime import QuestionAnswerer, TokenTagger
from tfnlp.checkpoints import load_model, read_config, save_model
from tfnlp.text import load_tokenizer

ANSWERS = {"answers": [{"answer_start": 4, "text": "fine"}], "question": "what film ?"}
QUESTIONS = [{"id": str(i)} | ANSWERS for i in range(8)]
SQUAD = json.dumps({"data": [{"paragraphs": [{"context": "the fine film", "qas": QUESTIONS}]}]})


@pytest.fixture
def road(teacher, run, refused, tmp_path):
    """Runs a task: `road(task, path, flags, said, methods)`; gives the run's folder.

    Its arguments are the file of train and dev, what `predict` says of "the fine film", and the
    flags of a student. The model, its file and its student answer alike.
    """
    start, out, student = tmp_path / "start", tmp_path / "run", tmp_path / "run/student"
    # Of one layer: most of the time is tracing.
    model = make_student(load_model(teacher[0] / "best", "classifier"), 1)
    save_model(model, start, tokenizer=load_tokenizer(teacher[0] / "best"))

    def road(task, path, flags, said, methods):
        files = (f"--train={path}", f"--dev={path}", "--max_length=48")
        learning = ("--epochs=5", "--batch_size=2", "--learning_rate=5e-3", *flags)
        run(f"finetune_{task}", *files, f"--model_dir={start}", *learning, f"--output_dir={out}")
        export = (f"--model_dir={out}/best", f"--output_dir={out}")
        run("export_tflite", *export)
        # What calibrates is read as the task's files are.
        few = ("--overwrite", "--quantization=static_int8", f"--calibration_text={path}")
        assert "holds 8 texts, but at least 16" in refused("export_tflite", *export, *few)
        question = ["--question=what film ?"] if task == "answerer" else []
        probabilities = []
        for model in ("best", "model.tflite"):
            done = run("predict", f"--model={out}/{model}", "--text=the fine film", *question)
            label, probability, *rest = done.stdout.replace("\t", " ").split()
            assert [label, *rest] == said.split()
            probabilities.append(float(probability))
        assert probabilities[0] == pytest.approx(probabilities[1], abs=0.2)
        smaller = (f"--teacher_dir={out}/best", "--num_layers=1", "--epochs=1", *methods)
        run(f"distill_{task}", *files, *smaller, f"--output_dir={student}")
        whole, small = (json.loads((f / "figures.json").read_text()) for f in (out, student))
        assert small["teacher_dev_f1"] == whole["dev_f1"] == 1
        assert small["share_of_teacher"] == small["dev_f1"]
        return out

    return road


def test_a_tagger_from_the_shell_to_a_file_for_phones(road, run, tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("the\tO\nfine\tB-x\nfilm\tI-x\n\n" * 8)
    methods = ("--method=tinybert", "--intermediate_epochs=1", "--family=distilbert")
    flags = ("--stride=5", "--adversarial_weight=1")
    out = road("tagger", path, flags, "x fine film the fine film", methods)
    # The words of a tagger's file are its texts.
    small = (f"--model_dir={out}/best", f"--text={path}", f"--output_dir={out}/small")
    run("prune_vocabulary", *small)
    figures = json.loads((out / "small/figures.json").read_text())
    assert figures["texts_with_other_tokens"] == [0.0] and figures["tokens"][1] < 80
    assert read_config(out / "student/best").model_type == "distilbert"
    (metrics,) = (out / "student/intermediate/metrics.jsonl").read_text().splitlines()
    assert "embedding_loss" in json.loads(metrics)
    tagger = TokenTagger(out / "model.tflite")
    assert tagger.tag(["the fine film"]) == [[("the", "O"), ("fine", "B-x"), ("film", "I-x")]]
    assert (tagger.settings["max_length"], tagger.settings["stride"]) == (48, 5)


def test_an_answerer_from_the_shell_to_a_file_for_phones(road, run, tmp_path):
    path = tmp_path / "a.json"
    path.write_text(SQUAD)
    methods = ("--method=minilm_v2", "--relation_heads=2", "--size=bert_tiny")
    out = road("answerer", path, ("--stride=16",), "fine what film ?", methods)
    (metrics,) = (out / "student/metrics.jsonl").read_text().splitlines()
    assert "key_relation_loss" in json.loads(metrics)
    done = run("predict", f"--model={out / 'best'}", f"--input={path}")
    assert "exact_match 1.0000 on 8 texts" in done.stderr
    found = QuestionAnswerer(out / "model.tflite").answer("what film ?", "the fine film")[0]
    assert (found.text, found.start, found.end) == ("fine", 4, 8)
    n_best, of_student = (
        json.loads((folder / "n_best.json").read_text()) for folder in (out, out / "student")
    )
    right = [answers[0]["text"] == "fine" for answers in of_student.values()]
    figures = json.loads((out / "student/figures.json").read_text())
    assert np.mean(right) == figures["dev_exact_match"] and len(right) == 8
    for best, *others in n_best.values():
        assert best["score"] == pytest.approx(found.score, abs=0.2)
        assert all(other["score"] <= best["score"] for other in others)


def test_any_family_from_scratch_with_its_own_kind_of_tokenizer(run, refused, tmp_path):
    """A tagger learns its vocabulary; an answerer in blocks takes one from a folder."""
    words, asked, texts, pieces = (tmp_path / name for name in ("a.conll", "a.json", "a.txt", "p"))
    words.write_text("the\tO\nfine\tB-x\nfilm\tI-x\n\na\tO\ndull\tB-y\nplot\tO\n\n" * 8)
    asked.write_text(SQUAD)
    texts.write_text("the fine film\nwhat film ?\n" * 8)
    small = ["--num_layers=1", "--num_heads=2", "--hidden_dim=16", "--max_length=48"]
    small += ["--epochs=2", "--batch_size=8"]
    best = tmp_path / "tagger/best"
    flags = [f"--train={words}", f"--dev={words}", f"--output_dir={best.parent}", *small]
    run("finetune_tagger", *flags, "--family=deberta_v3", "--vocabulary_size=40")
    config, tokenizer = read_config(best), load_tokenizer(best)
    assert (config.num_layers, config.hidden_dim, config.intermediate_dim) == (1, 16, 64)
    assert (tokenizer.family, config.vocabulary_size) == ("deberta-v2", tokenizer.vocabulary_size)
    assert "\n| num_buckets | 256 |\n" in (best.parent / "README.md").read_text()

    flags = [f"--input={texts}", "--kind=unigram", "--family=xlnet", "--vocabulary_size=40"]
    run("train_tokenizer", *flags, f"--output_dir={pieces}")
    best = tmp_path / "answerer/best"
    flags = [f"--train={asked}", f"--dev={asked}", f"--tokenizer_dir={pieces}", *small]
    flags += [f"--output_dir={best.parent}", "--block_size=8"]
    error = refused("finetune_answerer", *flags, "--size=deberta_v3_small")
    assert "family 'deberta-v2' and the tokenizer one for 'xlnet'" in error
    run("finetune_answerer", *flags, "--family=xlnet")
    assert len({str(load_tokenizer(f).tokens("what fine film")) for f in (best, pieces)}) == 1
    assert "block" not in (best / "config.json").read_text()
