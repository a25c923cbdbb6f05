"""Labels as people have them: columns, lists and probabilities, from the shell."""

import json

import pytest

TRAINING = ["--batch_size=8", "--max_length=16"]
BAG = ["--family=bag", "--hidden_dim=16", "--vocabulary_size=300", *TRAINING]
BAG += ["--learning_rate=5e-2", "--epochs=6"]
BERT = ["--family=bert", "--num_layers=1", "--hidden_dim=32", "--num_heads=2", *TRAINING]
BERT += ["--learning_rate=6e-3", "--epochs=12"]
WORDS = {"fine": "praise", "dull": "blame", "plot": "story"}


@pytest.fixture
def texts():
    """Texts and the labels of their words."""
    rows = []
    for n in range(64):
        words = [word for i, word in enumerate(WORDS) if n >> i & 1]
        rows.append((" ".join(["the film", *words]), [WORDS[word] for word in words]))
    return rows


def test_a_column_for_each_label_or_lists_from_training_to_the_file(texts, run, refused, tmp_path):
    labels, each, lists = [*WORDS.values()], tmp_path / "each.tsv", tmp_path / "lists.jsonl"
    rows = ["\t".join(["sentence", *labels])]
    rows += ["\t".join([text, *(str(int(x in has)) for x in labels)]) for text, has in texts]
    each.write_text("\n".join(rows) + "\n", encoding="utf-8")
    lines = [json.dumps({"sentence": text, "labels": has}) for text, has in texts]
    lists.write_text("\n".join(lines) + "\n", encoding="utf-8")
    flags = ["--multi_label", f"--train={each}", f"--dev={each}"]
    flags += [f"--label_columns={','.join(labels)}"]
    run(
        "finetune_classifier",
        *BERT,
        "--vocabulary_size=300",
        *flags,
        f"--output_dir={tmp_path}/run",
    )
    figures = json.loads((tmp_path / "run/figures.json").read_text())
    assert figures["dev_macro_f1"] > 0.85
    config = json.loads((tmp_path / "run/best/config.json").read_text())
    flags_of_run = json.loads((tmp_path / "run/flags.json").read_text())
    assert flags_of_run["monitor"] == "macro_f1"
    assert config["problem_type"] == "multi_label_classification"
    student = ["--multi_label", f"--train={lists}", f"--dev={lists}", "--label_column=labels"]
    student += [f"--teacher_dir={tmp_path}/run/best", f"--output_dir={tmp_path}/student"]
    run("distill_classifier", *student, *BERT)
    figures = json.loads((tmp_path / "student/figures.json").read_text())
    assert figures["dev_macro_f1"] > 0.85 and figures["teacher_dev_macro_f1"] > 0.85
    export = (f"--model_dir={tmp_path}/student/best", f"--output_dir={tmp_path}/export")
    run("export_tflite", *export, "--quantization=float32")
    file = tmp_path / "export/model.tflite"
    run("predict", f"--model={file}", f"--input={lists}", f"--output_dir={tmp_path}/said")
    summary = json.loads((tmp_path / "said/summary.json").read_text())
    for name in ("macro_f1", "micro_f1", "sample_f1", "exact_match"):
        assert summary[name] == pytest.approx(figures[f"dev_{name}"], abs=1e-6), name
    assert summary["by_label"]["story"]["texts"] == 32
    said = run("predict", f"--model={file}", "--text=the film fine plot").stdout
    assert said.startswith("praise")
    for flag, message in (
        ("--threshold=2", "threshold=2 must be a number from 0 to 1"),
        ("--class_weights=fear=2", "class_weights"),
        ("--positive_label=story", "has no effect beside --multi_label"),
    ):
        assert message in refused("finetune_classifier", *BAG, *flags, flag, "--output_dir=a")


def test_probabilities_that_predict_wrote_are_learned(texts, run, tmp_path):
    train, dev, other = (tmp_path / name for name in ("train.csv", "dev.tsv", "other.csv"))
    other.write_text("review,x\na fine film,1\n")
    rows = [f"{text}\t{'good' if 'fine' in text else 'bad'}" for text, _ in texts]
    dev.write_text("\n".join(["sentence\tlabel", *rows]) + "\n", encoding="utf-8")
    flags = [*BAG, f"--train={dev}", f"--dev={dev}", "--calibrate"]
    run("finetune_classifier", *flags, f"--output_dir={tmp_path}/run")
    figures = json.loads((tmp_path / "run/figures.json").read_text())
    assert figures["dev_calibration_error"] <= figures["dev_calibration_error_before"]
    predict = ("predict", f"--model={tmp_path}/run/best", f"--input={dev}", "--probabilities")
    run(*predict, f"--output_dir={tmp_path}/said")
    header = (tmp_path / "said/predictions.tsv").read_text().splitlines()[0]
    assert header.split("\t") == ["label", "gold", "bad", "good", "sentence"]
    said = run(*predict, f"--output={train}").stderr
    assert said.startswith(f"Wrote {train}.") and "accuracy 1.0000 on" in said
    header, *rows = train.read_text(encoding="utf-8").splitlines()
    assert header == "sentence,label,prediction,bad,good"
    train.write_text("\n".join([header.replace("label", "x"), *rows]), encoding="utf-8")
    refused = run(*predict[:2], f"--input={other}", status=2).stderr
    assert refused.startswith(f"Error: --text_column=sentence: {other} has no column")
    flags = [*BAG, f"--train={train}", "--label_columns=bad,good", f"--dev={dev}"]
    run("finetune_classifier", *flags, f"--output_dir={tmp_path}/soft")
    figures = json.loads((tmp_path / "soft/figures.json").read_text())
    assert figures["dev_accuracy"] == 1.0
