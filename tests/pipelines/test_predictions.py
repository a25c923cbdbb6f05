"""Every kind of model over texts, by a file and by a folder: the same answers, and scores."""

import dataclasses
import json

import numpy as np
import pytest

from distill.runtime import load_runner as load_file
from tfnlp.pipelines import (
    Inputs,
    input_table,
    load_runner,
    prediction_task,
    task_of,
    write_table,
)
from tfnlp.pipelines.pipeline import Classification
from tfnlp.pipelines.predictions import (
    predict_inputs,
    print_predictions,
    summarise,
    write_predictions,
)
from tfnlp.tasks.confusion_matrix import confusion_table
from tfnlp.tasks.question_answering import f1
from tfnlp.text.reading.readers import read_rows
from tfnlp.utils.errors import InputError

QUESTIONS = [
    {"id": "q1", "question": "film ?", "answers": [{"answer_start": 23, "text": "a fine plot"}]},
    {"id": "q2", "question": "plot ?", "answers": []},
]
PARAGRAPH = {"context": "the film is not dull , a fine plot", "qas": QUESTIONS}
SQUAD = {"data": [{"paragraphs": [PARAGRAPH]}]}
FILES = {
    "classifier": ("a.tsv", "sentence\tlabel\na fine film\tgood\nthe plot\tbad\nx\tbad\n"),
    "multi-label classifier": (
        "a.tsv",
        "sentence\tlabels\na fine film\tgood\nthe plot\tbad,good\nx\t\n",
    ),
    "scorer": ("a.tsv", "sentence1\tsentence2\tscore\na\tfilm\t1\nfine\tplot\t2\nx\ta film\t4\n"),
    "tagger": ("a.conll", "the\tO\nfine\tB-x\nfilm\tI-x\n.\tO\n\n정말\tB-x\n좋다\tO\n"),
    "answerer": ("a.json", json.dumps(SQUAD)),
    "chooser": (
        "a.tsv",
        "prompt\tchoice0\tchoice1\tlabel\nthe film is\tdull\tfine\t0\na\tx\tplot .\t1\n",
    ),
}


def numbers(prediction):
    """All numbers of a prediction, and the rest of it."""
    if isinstance(prediction, float):
        return [prediction], None
    fields = dataclasses.asdict(prediction)
    flat, rest = [], []
    for value in fields.values():
        values = list(value.values()) if isinstance(value, dict) else value
        values = values if isinstance(values, list) else [values]
        flat += [v for v in values if isinstance(v, float)]
        rest += [v for v in values if not isinstance(v, float)]
    return flat, rest


@pytest.mark.parametrize("kind", FILES)
def test_a_folder_and_its_file_predict_the_same(kind, folders, files, tmp_path, capsys):
    name, text = FILES[kind]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    runners = load_runner(folders[kind], batch_size=2), load_file(files[kind])
    assert [runner.kind.name for runner in runners] == [kind, kind]
    assert runners[0].max_length == runners[1].max_length == 24
    inputs = prediction_task(kind, runners[0].labels).read(path)
    found = [predict_inputs(runner, inputs) for runner in runners]
    assert len(found[0]) == len(found[1]) == len(inputs.texts)
    for ours, theirs in zip(*found, strict=True):
        (ours, others), (theirs, their_others) = numbers(ours), numbers(theirs)
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
        assert others == their_others
    right = scores_by_hand(kind, inputs, found[0])
    summary = summarise(runners[0], inputs, found[0])
    assert summary["texts"] == len(inputs.texts)
    for key, value in right.items():
        assert summary[key] == pytest.approx(value), key
    print_predictions(runners[0], inputs, found[0])
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == len(inputs.texts)
    assert all(f"{key} {value:.4f} on" in printed.err for key, value in right.items())
    check_baseline_and_counts(kind, summary, printed.err)
    write_predictions(tmp_path, runners[0], inputs, found[0])
    assert json.loads((tmp_path / "summary.json").read_text()) == summary
    check_written(kind, tmp_path, inputs, found[0])
    task = prediction_task(kind, runners[0].labels)
    for output in ("said.jsonl", "said.parquet"):
        write_table(tmp_path / output, input_table(task, inputs, path), task, found[0])
        rows = [*read_rows(tmp_path / output)]
        assert len(rows) == len(found[0]) and {*task.columns} < {*rows[0]}


def scores_by_hand(kind, inputs, found):
    if kind == "classifier":
        pairs = zip(found, inputs.gold, strict=True)
        return {"accuracy": np.mean([p.label == label for p, label in pairs])}
    if kind == "multi-label classifier":
        right = [{"good"}, {"bad", "good"}, set()]
        same = [{*p.labels} == labels for p, labels in zip(found, right, strict=True)]
        both = sum(len({*p.labels} & labels) for p, labels in zip(found, right, strict=True))
        micro_f1 = 2 * both / (3 + sum(len(p.labels) for p in found))
        return {"exact_match": np.mean(same), "micro_f1": micro_f1}
    if kind == "scorer":
        return {"pearson": np.corrcoef(found, inputs.gold)[0, 1]}
    if kind == "tagger":
        tags = [tag for one in found for tag in one.tags]
        right = ["O", "B-x", "I-x", "O", "B-x", "O"]
        return {"word_accuracy": np.mean([a == b for a, b in zip(tags, right, strict=True)])}
    if kind == "answerer":
        return {"f1": (f1(found[0].text, "a fine plot") + (found[1].text == "")) / 2}
    return {"accuracy": np.mean([c.place == i for c, i in zip(found, [0, 1], strict=True)])}


MULTI_LABEL_BASELINE = {"macro_f1": 0.4, "micro_f1": 2 / 3}
MULTI_LABEL_BASELINE |= {"sample_f1": (1 + 2 / 3 + 0) / 3, "exact_match": 1 / 3}


def check_baseline_and_counts(kind, summary, printed):
    """The right labels are good, bad, bad; 1, 2, 4; O, B-x, I-x, O, B-x, O; 0, 1."""
    baselines = {key: value for key, value in summary.items() if key.startswith("baseline_")}
    expected = {
        "classifier": {"accuracy": 2 / 3, "matthews": 0.0, "macro_f1": 0.4},
        "multi-label classifier": MULTI_LABEL_BASELINE,
        "scorer": {"pearson": 0.0, "spearman": 0.0, "mean_squared_error": 14 / 9},
        "tagger": {"f1": 0.0, "precision": 0.0, "recall": 0.0, "word_accuracy": 0.5},
        "answerer": {},
        "chooser": {"accuracy": 0.5},
    }[kind]
    assert baselines == pytest.approx({f"baseline_{k}": v for k, v in expected.items()})
    assert printed.count("(baseline ") == len(expected)
    assert ("confusion" in summary) == (kind in ("classifier", "tagger"))
    if "confusion" in summary:
        matrix = summary["confusion"]
        right = {"good": 1, "bad": 2} if kind == "classifier" else {"O": 3, "B-x": 2, "I-x": 1}
        sums = [sum(row) for row in matrix["counts"]]
        assert dict(zip(matrix["labels"], sums, strict=True)) == right
        assert f"\n{confusion_table(matrix)[-1]}\n" in printed


def test_the_summary_has_the_f1_of_a_class_and_the_only_answer(capsys):
    class Always:
        kind, labels, settings, max_length = "classifier", ["bad", "good"], {}, 24

    inputs = Inputs(["a", "b", "c"], None, ["bad", "good", "good"])
    found = [Classification("good", {"bad": 0.1, "good": 0.9}, False)] * 3
    summary = summarise(Always, inputs, found, task_of(Always, "good"))
    assert (summary["f1"], summary["baseline_f1"]) == pytest.approx((0.8, 0.8))
    assert summarise(Always, inputs, found, task_of(Always, "bad"))["f1"] == 0
    assert "f1" not in summarise(Always, inputs, found)
    assert summary["only_answer"] == "good"
    assert summary["confusion"] == {"labels": ["bad", "good"], "counts": [[0, 1], [0, 2]]}
    print_predictions(Always, inputs, found, task_of(Always, "good"))
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0] == "good\tbad\t0.9000\ta"
    assert "f1 0.8000 on 3 texts (baseline 0.8000)\nAll texts get one answer, good" in printed.err
    task = prediction_task("classifier", Always.labels, None, None, True)
    print_predictions(Always, inputs, found, task)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "label\tgold\tbad\tgood\tsentence"
    assert printed[1] == "good\tbad\t0.100000\t0.900000\ta" and len(printed) == 4
    alike = Inputs(["a", "b"], None, ["good", "good"])
    assert "only_answer" not in summarise(Always, alike, found[:2])
    for kind, labels, label in (("classifier", Always.labels, "fine"), ("tagger", ["O"], "O")):
        with pytest.raises(InputError, match=f"positive_label={label} is"):
            prediction_task(kind, labels, positive_label=label)


def check_written(kind, folder, inputs, found):
    if kind == "tagger":
        values = [json.loads(line) for line in (folder / "predictions.jsonl").open()]
        right = [["O", "B-x", "I-x", "O"], ["B-x", "O"]]
        for value, one, gold in zip(values, found, right, strict=True):
            assert [(word["tag"], word["gold"]) for word in value["words"]] == [
                *zip(one.tags, gold, strict=True)
            ]
            for part in value["words"]:
                assert value["text"][slice(*part["span"])] == part["word"]
            assert value["entities"] == [dataclasses.asdict(e) for e in one.entities]
        return
    if kind == "answerer":
        values = [json.loads(line) for line in (folder / "predictions.jsonl").open()]
        gold = [(value["id"], value["gold"]) for value in values]
        assert gold == [("q1", ["a fine plot"]), ("q2", [])]
        for value, one in zip(values, found, strict=True):
            place = slice(value["start"], value["end"])
            assert value["text"] == one.text == inputs.second_texts[0][place]
            assert value["probability"] == one.probability
        return
    lines = (folder / "predictions.tsv").read_text(encoding="utf-8").splitlines()
    header, *rows = [line.split("\t") for line in lines]
    assert all(len(row) == len(header) for row in rows)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    if kind == "classifier":
        assert header == ["label", "gold", "probability", "sentence"]
        assert columns["label"] == tuple(one.label for one in found)
        assert columns["gold"] == ("good", "bad", "bad")
    elif kind == "multi-label classifier":
        assert header == ["labels", "gold", "probabilities", "sentence"]
        assert columns["labels"] == tuple(",".join(one.labels) for one in found)
        assert columns["gold"] == ("good", "bad,good", "")
        shares = [",".join(f"{p.probabilities[x]:.4f}" for x in p.labels) for p in found]
        assert columns["probabilities"] == tuple(shares)
    elif kind == "scorer":
        assert header == ["score", "gold", "sentence", "pair"]
        np.testing.assert_allclose([*map(float, columns["score"])], found, atol=1e-4)
    else:
        assert header == ["choice", "gold", "probability", "prompt", "ending"]
        assert columns["ending"] == tuple(one.ending for one in found)
