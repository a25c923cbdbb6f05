"""Other tasks and families, from the shell to a file for phones."""

import json

import numpy as np
import pytest

from distill.learning import make_student
from distill.runtime import QuestionAnswerer, TokenTagger
from tfnlp.checkpoints import load_model, read_config, save_model
from tfnlp.text import load_tokenizer


def test_other_tasks_from_the_shell_to_a_file_for_phones(teacher, run, tmp_path):

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
        few = ("--overwrite", "--quantization=static_int8", f"--calibration_text={path}")
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


def test_any_family_from_scratch_with_its_own_kind_of_tokenizer(run, tmp_path):
    """A tagger learns its vocabulary; an answerer in blocks takes one from a folder."""
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
    assert "family 'deberta-v2' and the tokenizer one for 'xlnet'" in done.stderr
    run("finetune_answerer", *flags, "--family=xlnet")
    wordpiece = tmp_path / "wordpiece"  # WordPiece fits any family
    run("train_tokenizer", f"--input={texts}", f"--output_dir={wordpiece}")
    flags[2:3] = [f"--tokenizer_dir={wordpiece}"]
    run("finetune_answerer", *flags[:-2], f"--output_dir={tmp_path / 'of_words'}")
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
