"""Flags, columns and files that do not fit are told before TensorFlow is imported."""

import json

import pytest

from tests.recipes.refusals import check_refusals, refusals

FILES = {
    "fine.tsv": "sentence\tlabel\na fine film\tgood\na poor film\tbad\n",
    "votes.tsv": "sentence\tgood\tbad\na fine film\t2\t1\na poor film\t0\t3\n",
    "lists.jsonl": '{"sentence": "a fine film", "label": ["praise, mild", "film"]}\n',
    "other.tsv": "sentence1\tlabel\na fine film\tgood\n",
    "text.tsv": "sentence\na fine film\n",
    "text.de": "Satz\nein guter Film\n",
    "lines.jsonl": '{"sentence1": "a fine film", "label": "good"}\n',
    "scores.tsv": "sentence1\tsentence2\tscore\na\tb\t1.5\na\tb\tmuch\n",
    "choices.tsv": "prompt\tchoice0\tchoice1\tlabel\na\tb\tc\t2\n",
    "tags.conll": "the\tO\nfilm\tnoun\n\n",
    "broken.json": '{"data": [}',
    ".text.tsv.1a2b3c4d": "",  # as a kill while a file is written leaves it
    "vectors.bin": f"2 3\nfilm {12 * ' '}\npoor {12 * ' '}\n",  # 4 bytes a number
}
HAS = "other.tsv has no column {!r}; its header (line 1) has sentence1, label."
# Flags of each recipe, and the message; "" where they are accepted. A file that begins the flags
# is that of --train and --dev.
CASES = {
    "finetune_classifier": {
        "fine.tsv --dev=no.tsv": "no.tsv does not exist",
        "fine.tsv --xla": "--xla=True compiles the steps anew",
        "fine.tsv --family=bag --num_layers=2": "--num_layers=2 is no field of the family bag",
        "fine.tsv --family=textcnn --channels=static": "give them by --embeddings",
        "fine.tsv --embeddings={d}/vectors.bin": "vectors.bin has no effect on a transformer",
        "fine.tsv --embeddings=no.txt --family=bag": "no.txt does not exist",
        "fine.tsv --family=lstm --embeddings={d}/vectors.bin --hidden_dim=4": "=4 is not 3",
        "fine.tsv --model_dir=a --embeddings={d}/vectors.bin": "--embeddings={d}/vectors.bin has",
        "other.tsv": "--text_column=sentence: {d}/" + HAS.format("sentence"),
        "fine.tsv --labels=good,poor": "{d}/fine.tsv, line 3: label 'bad' is not one of",
        "fine.tsv --labels=good,good,bad": "--labels=good,good,bad: ",
        "fine.tsv --positive_label=fine": "--positive_label=fine is not one of",
        "fine.tsv --monitor=f1": "--monitor=f1 scores one class",
        "fine.tsv --monitor=coverage": "--monitor=coverage is no score",
        "fine.tsv --threshold=2": "--threshold=2 must be",
        "fine.tsv --none_label=x": "--none_label=x has no effect",
        "fine.tsv --threshold=0.9 --none_label=bad": "--none_label=bad must be",
        "fine.tsv --class_weights=bad=1,bad=2": "--class_weights=bad=2: ",
        "fine.tsv --class_weights=balanced": "",
        "fine.tsv --class_weights=bad=2 --focal_gamma=1": "",
        "fine.tsv --labels=good,bad": "",
        "votes.tsv --label_columns=good,bad --labels=bad,poor": "of the labels, bad,poor.",
        "votes.tsv --label_columns=good,bad --labels=bad,good": "",
        "lists.jsonl --multi_label": "--label_separator=, is in the label 'praise, mild'",
        "lists.jsonl --multi_label --label_separator=|": "",
    },
    "finetune_embedder": {
        "fine.tsv --text_columns=sentence,label --label_column=label": "with --loss=ranking",
    },
    "finetune_regression": {"scores.tsv": "line 3: score 'much' is not a number; write"},
    "finetune_chooser": {
        "choices.tsv": "choices.tsv, line 2: ",
        "other.tsv --prompt_column=sentence1 --choice_columns=a,label": "--choice_columns=a: ",
    },
    "finetune_tagger": {
        "tags.conll": "line 2: tag 'noun' is not one of O, B-x",
        "tags.conll --labels=O,noun --family=bag": "head='tagger' does not fit the family 'bag'",
        "tags.conll --family=distilbret": "did you mean distilbert?",
    },
    "finetune_answerer": {"broken.json": "broken.json"},
    "distill_classifier": {
        "fine.tsv --family=lstm --num_heads=2": "--num_heads=2 is no field of the family lstm",
        "fine.tsv --family=bag --embeddings={d}/vectors.bin --keep_tokens=9": "--keep_tokens=9 ",
        "fine.tsv --hard_label_weight=0 --class_weights=a=2": "class_weights=a=2 has no effect",
        "fine.tsv --hard_label_weight=0 --probability_weight=0.5": "beside --hard_label_weight=0",
    },
    "distill_regression": {
        "other.tsv --pair_column=": "--score_column=score: {d}/other.tsv",
        "other.tsv --pair_column= --label_column=b": "--score_column=b: {d}/other.tsv",
    },
    "distill_tagger": {},
    "distill_answerer": {
        "broken.json --student_dir=hf://a --size=x": "--size=x has no effect beside --student_dir"
    },
    "distill_chooser": {
        "choices.tsv --student_dir=no/such/one": "no/such/one is no folder",
        "choices.tsv --teacher_dir=a,no/such/one": "no/such/one is no folder",
        "choices.tsv --teacher_weights=a,b": "--teacher_weights=a,b must be numbers with commas",
        "choices.tsv --hidden_dim=15 --num_heads=2": "--num_heads=2 does not divide --hidden_dim=",
        "choices.tsv --layer_map=1,3": "--layer_map=1,3 must name one of the teacher's 4 layers",
        "choices.tsv --size=bert_tiny --layer_map=1,2,3": "for each of the student's 2",
    },
    "distill_embedder": {
        "scores.tsv": "--train_columns=sentence: {d}/scores.tsv has no column 'sentence'",
        "text.tsv --train_columns=sentence": "--text_columns=sentence1: {d}/text.tsv has no",
        "--train={d}/text.tsv --dev={d}/scores.tsv --translations --method=tinybert": "tinybert",
        "--train={d}/text.tsv --dev={d}/scores.tsv --accumulation_steps=2": "--accumulation_steps",
        "--train={d}/text.tsv --dev={d}/scores.tsv --teacher_dir=t,t": "give one",
        "--train={d}/text.tsv --dev={d}/scores.tsv --matryoshka_dims=8 --similarity_weight=0": "8",
    },
    "distill_general": {
        "--texts={d}/fine.tsv,no.txt": "no.txt does not exist",
        "--texts={d}/other.tsv --text_column=label --family=DeBERTa_v4": "did you mean deberta_v3",
    },
    "train_translator": {
        "other.tsv --source_column=label": "--target_column=target: {d}/" + HAS.format("target"),
        # Two files have lines, not columns.
        "text.tsv,{d}/text.de": "",
        "text.tsv,{d}/text.de --dev={d}/text.tsv": "--source_column=source: {d}/text.tsv has",
    },
    "translate": {"--input={d}/lines.jsonl": "{d}/lines.jsonl, line 1: no field 'source'"},
    "export_tflite": {
        "--output_dir=/proc/none/run": "/proc takes no files",
        "--fixed_lengths=a": "--fixed_lengths=a must be whole numbers",
        "--calibration_text={d}/fine.tsv": "has no effect with --quantization=int8",
        "--quantization=static_int8 --calibration_text={d}/other.tsv --calibration_column=x": "x:",
    },
    "predict": {
        "--input={d}/other.tsv --pair_column=b": "--pair_column=b: {d}/" + HAS.format("b"),
        "--input={d}/other.tsv --score_column=b": "--label_column=b: {d}/" + HAS.format("b"),
        "--text=a --output=said.csv": "/run has no effect beside --output=said.csv, the table",
        "--text=a --output_dir={d}": "--output_dir={d} has broken.json",
        "--text=a --output_dir=/proc/none/run": "/proc takes no files",
        "--text=a --output_dir=hf://a/b": "--output_dir=hf://a/b is an address",
        "--input=gs://b/a.tsv": "--input=gs://b/a.tsv is an address",
        "--text=a --model=m.tflite --batch_size=2": "--batch_size=2 has no effect",
    },
    "augment": {"--input={d}/text.tsv": ""},  # labels are not read
    "baseline_classifier": {"fine.tsv --output_dir=/proc/none/run": "/proc takes no files"},
    "frontier": {"--input={d}/fine.tsv": "Give either --sweep_dir or --models."},
    "benchmark_tflite": {"--input={d}/fine.tsv": "Agreement needs both --model_dir and --input."},
}


@pytest.mark.parametrize("recipe", CASES)
def test_wrong_input_is_told_before_tensorflow_is_imported(recipe, tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    start = [] if recipe == "translate" else [f"--output_dir={tmp_path / 'run'}"]
    if recipe in ("export_tflite", "translate", "augment"):
        start.append("--model_dir=m")
    if recipe in ("predict", "benchmark_tflite"):
        start.append("--model=m")
    if recipe.startswith("distill"):
        start.append("--teacher_dir=t")
    cases = {}
    for flags, message in CASES[recipe].items():
        file, _, rest = flags.partition(" ")
        if not file.startswith("--"):
            flags = f"--train={{d}}/{file} --dev={{d}}/{file} {rest}"
        cases[flags.format(d=tmp_path)] = message.format(d=tmp_path)
    check_refusals(recipe, start, cases)
    assert not (tmp_path / "run").exists()


def test_a_folder_for_another_task_is_told_before_tensorflow_is_imported(tmp_path):
    config = {"model_type": "bert", "architectures": ["BertForMultipleChoice"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "fine.tsv").write_text(FILES["fine.tsv"])
    words = [f"--{name}={tmp_path}/fine.tsv" for name in ("train", "dev")]
    words += [f"--teacher_dir={tmp_path}", f"--output_dir={tmp_path}/run"]
    (said,) = refusals("distill_classifier", [words])
    assert "head 'chooser', but the task needs the head 'classifier'" in said
    (said,) = refusals("translate", [[f"--model_dir={tmp_path}", "--text=a"]])
    assert f"--model_dir={tmp_path} holds no translator" in said


def test_single_texts_for_a_teacher_of_pairs_are_told_before_tensorflow_is_imported(tmp_path):
    config = {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}
    (tmp_path / "both.tsv").write_text(
        "sentence\tsentence1\tlabel\tscore\na\tc\t0\t1\nb\td\t1\t2\n"
    )
    words = [f"--{name}={tmp_path}/both.tsv" for name in ("train", "dev")]
    words += [f"--teacher_dir={tmp_path}", f"--output_dir={tmp_path}/run"]
    for recipe, labels, flags in (
        ("distill_classifier", "01", []),
        ("distill_regression", "0", ["--text_column=sentence", "--pair_column="]),
    ):
        settings = {"task_specific_params": {"classifier": {"pairs": True}}}
        settings["id2label"] = {x: x for x in labels}
        (tmp_path / "config.json").write_text(json.dumps(config | settings))
        (said,) = refusals(recipe, [[*words, *flags]])
        assert "reads pairs of texts; name the column of the second ones by --pair_column" in said
        (said,) = refusals(recipe, [[*words, *flags, "--pair_column=sentence1"]])
        assert said == ""
