"""`FineTuning` picks the best epoch on dev, and reports that model, each split by itself."""

import dataclasses
import types

import numpy as np
import pytest

from distill.learning import Distillation, Teacher, make_student
from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import build_model
from tfnlp.tasks import Classification, MultipleChoice, Regression, Tagging
from tfnlp.tasks.classifier_settings import Decision
from tfnlp.tasks.multiple_choice import Choices
from tfnlp.tasks.regression import ScoredExamples
from tfnlp.tasks.tagging import TaggedSentences
from tfnlp.text import Encoding, LengthBatches
from tfnlp.text.reading.readers import Examples
from tfnlp.text.reading.soft_labels import SoftExamples
from tfnlp.training import FineTuning, RunFolder, Splits, TrainingConfig
from tfnlp.training.experiments import finetuning
from tfnlp.training.experiments.finetuning import check_varied
from tfnlp.utils.errors import InputError

TRAIN = Examples(["a fine film", "the plot is dull"] * 4, labels=[1, 0] * 4)
DEV = Examples(["not fine", "the film is fine", "x"], labels=[0, 1, 0])
WEB = Examples(["fine", "dull"], labels=[1, 0])
TEST = Examples(["a dull film", "un film x", "fine", "영화 정말 좋다"], labels=[0, 1, 1, 1])


class Scripted(Classification):
    """Scores by a script while there is one, then by what the model gives; notes each call."""

    def __init__(self, script):
        super().__init__(["bad", "good"])
        self.script = list(script)
        self.calls = []

    def decode(self, examples, encodings, outputs):
        assert len(encodings) == len(outputs["logits"]) == len(examples)
        return np.stack(outputs["logits"])

    def score_predictions(self, examples, predictions):
        self.calls.append((examples, predictions))
        return {"accuracy": self.script.pop(0) if self.script else float(predictions.mean())}

    def answers(self, examples, predictions):
        return super().answers(examples, ["bad"] * len(examples))

    def baseline(self, examples):
        return {}


def test_the_best_epoch_on_dev_is_reported_and_further_sets_select_nothing(
    one_layer, tokenizer, tmp_path
):
    # By turns of both dev sets in each epoch.
    task = Scripted([0.5, 0.1, 0.9, 0.2, 0.4, 0.3])
    model = build_model(one_layer, "classifier", 2)
    config = TrainingConfig(epochs=3, batch_size=4, learning_rate=1e-2)
    run = RunFolder(tmp_path / "run", {})
    data = Splits(TRAIN, DEV, 16, TEST, further_dev={"web": WEB})
    figures = FineTuning(task, model, tokenizer, data, config=config, run=run).run_all()
    assert [examples for examples, _ in task.calls] == [DEV, WEB] * 4 + [TEST]
    assert [m["val_accuracy"] for m in run.metrics()] == [0.5, 0.9, 0.4]
    assert [m["val_web/accuracy"] for m in run.metrics()] == [0.1, 0.2, 0.3]
    assert all(m["val_web/loss"] > 0 for m in run.metrics())
    first, best, last = (logits for _, logits in task.calls[:6:2])
    reported, web, test = (logits for _, logits in task.calls[6:])
    np.testing.assert_allclose(reported, best, atol=1e-5)
    np.testing.assert_allclose(web, task.calls[3][1], atol=1e-5)
    assert min(np.abs(reported - other).max() for other in (first, last)) > 0.01
    assert figures["dev_accuracy"] == pytest.approx(reported.mean())
    assert figures["test_accuracy"] == pytest.approx(test.mean())
    assert figures["dev_web/accuracy"] == pytest.approx(web.mean())
    saved = load_model(run.best, "classifier", 2)
    assert figures["parameters"] == saved.count_params()
    np.testing.assert_allclose(saved(tokenizer(DEV.texts))["logits"], best, atol=1e-5)


def test_other_examples_or_another_model_are_noticed_on_resuming(
    one_layer, tokenizer, tmp_path, no_graphs
):
    config = TrainingConfig(epochs=1, batch_size=4)
    flags = {"train": "train.tsv", "dev": "dev.tsv"}

    def start(model_config=one_layer, train=TRAIN, dev=DEV, labels=("bad", "good"), decision=None):
        task = Classification(list(labels), decision=decision)
        model, data = build_model(model_config, "classifier", 2), Splits(train, dev, 16)
        run = RunFolder(tmp_path / "run", flags)
        return FineTuning(task, model, tokenizer, data, config=config, run=run).run_all()

    figures = start()
    assert start() == figures
    relabelled = dataclasses.replace(TRAIN, labels=[0, *TRAIN.labels[1:]])
    retold = dataclasses.replace(DEV, texts=["not fine", "the film is fine", "X"])
    for changed, what in [
        ({"train": relabelled}, r"train \(train\.tsv\)"),
        ({"labels": ("good", "bad")}, r"train \(train\.tsv\)"),
        ({"dev": retold}, r"dev \(dev\.tsv\)"),
        ({"model_config": dataclasses.replace(one_layer, activation="relu")}, "model"),
    ]:
        with pytest.raises(InputError, match=rf"was trained on other content of {what} than"):
            start(**changed)
    with pytest.raises(InputError, match="was trained without settings of the task"):
        start(decision=Decision(threshold=0.6))


@pytest.mark.parametrize(("limit", "steps"), [({"epochs": 3}, 6), ({"max_steps": 5}, 5)])
def test_a_compression_is_over_all_steps(limit, steps, one_layer, tokenizer, tmp_path):
    asked, data = [], Splits(TRAIN, DEV, 16)  # two batches
    model, config = build_model(one_layer, "classifier", 2), TrainingConfig(batch_size=4, **limit)
    training = FineTuning(
        *(Classification(["bad", "good"]), model, tokenizer, data),
        config=config,
        run=RunFolder(tmp_path / "run", {}),
        compress=lambda _, number: asked.append(number),
    )
    training.batches = training.encode()
    training.build()
    assert asked == [steps]


@pytest.mark.parametrize("distilled", [False, True])
def test_numbers_begin_at_the_training_mean(
    distilled, one_layer, tokenizer, tmp_path, caplog, no_graphs
):
    """At a learning rate of 0, of a model and of a student narrower than its teacher."""
    texts = ["a fine film", "the plot is dull", "x", "fine"]
    train = ScoredExamples(texts, None, [40.0, 50.0, 48.0, 42.0])
    dev = ScoredExamples(texts, None, [0.0, 100.0, 50.0, 50.0])
    task, model = Regression(), build_model(one_layer, "classifier", 1)
    # Batches of three examples and of one: the loss on dev is the mean over examples.
    still = TrainingConfig(epochs=1, batch_size=3, learning_rate=0.0)
    run = RunFolder(tmp_path / "run", {})
    data = Splits(train, dev, 16)
    if distilled:
        teacher, student = Teacher([model], tokenizer, task), make_student(model, hidden_dim=16)
        figures = Distillation(
            task, student, tokenizer, data, config=still, run=run, teacher=teacher
        ).run_all()
    else:
        figures = FineTuning(task, model, tokenizer, data, config=still, run=run).run_all()
    best = load_model(run.best, "classifier")
    np.testing.assert_array_equal(best.get_layer("classifier").bias, [45.0])
    assert figures["dev_only_answer"] == pytest.approx(45, abs=1)
    answer = f"{figures['dev_only_answer']:.4f}"
    assert f"All of dev gets one answer, {answer}, though the right ones differ." in caplog.text
    assert "Classes" not in (run.path / "README.md").read_text()
    assert figures["dev_baseline_mean_squared_error"] == 1250
    assert figures["dev_mean_squared_error"] == pytest.approx(1275, rel=0.05)
    name = "val_hard_label_loss" if distilled else "val_loss"
    assert run.metrics()[0][name] == pytest.approx(figures["dev_mean_squared_error"], rel=1e-4)


def test_examples_of_one_label_alone_are_refused():
    words, tags = Classification(["bad", "good"]), Tagging(["O", "B-x"])
    for task, train, label in (
        (words, Examples(["a fine film", "fine"], labels=[1, 1]), "'good'"),
        (tags, TaggedSentences([["a", "film"], ["fine"]], [["O", "O"], ["O"]]), "'O'"),
        (Regression(), ScoredExamples(["a", "b"], None, [0.5, 0.5]), "0.5"),
    ):
        with pytest.raises(InputError, match=f"`train` have the label {label}"):
            FineTuning(task, None, None, Splits(train, DEV, 16), config=None, run=None).run_all()
    choices = Choices(["a", "b"], [["c", "d"], ["e", "f"]], [0, 0])
    varied = TaggedSentences([["a", "b"]], [["O", "B-x"]])
    soft = SoftExamples(["a", "b"], None, [0, 0], words.label_names, np.array([[0.9], [0.6]]))
    chooser = MultipleChoice()
    for task, train in ((words, TRAIN), (words, soft), (tags, varied), (chooser, choices)):
        check_varied(task, train)


def test_a_head_of_other_labels_is_told(one_layer, tokenizer, tmp_path):
    """Its first class goes on as the first of the task's, whatever their names."""
    begun = build_model(one_layer, "classifier", 2)
    for stored, names, said in (
        (["good", "bad"], ["bad", "good"], True),
        (["good", "bad"], ["good", "bad"], False),
        (["good", "bad"], ["bad", "fair", "good"], False),  # which has a head of its own
        (None, ["bad", "good"], False),
    ):
        save_model(begun, tmp_path / "start", stored, tokenizer)
        model = load_model(tmp_path / "start", "classifier", len(names))
        heads = [np.asarray(x.get_layer("classifier").kernel) for x in (begun, model)]
        assert (len(names) == 2) == np.array_equal(*heads)
        _, doubts = FineTuning(
            Classification(names), model, tokenizer, Splits(TRAIN, DEV, 16), None, None
        ).describe()
        assert [f"labels {', '.join(stored)}, and" in x for x in doubts] == [True] * said
    tagger = build_model(one_layer, "tagger", 2)
    assert not finetuning.doubtful_head(tagger, Tagging(["O", "B-x"]))


@pytest.mark.parametrize(("ids", "said"), [([0, 0, 0, 7, 3], True), ([7, 8, 9, 7, 3], False)])
def test_a_vocabulary_of_another_kind_is_told_by_its_unknown_tokens(ids, said, caplog):
    tokenizer = types.SimpleNamespace(unknown_token_id=0, special_token_ids=[0, 1, 2, 3])
    batches = LengthBatches([Encoding([2, *ids], [0] * 6)], 1)
    with caplog.at_level("WARNING"):
        finetuning.log_tokens(tokenizer, batches)
    assert ("75.0 % of the tokens are unknown" in caplog.text) == said


def test_a_training_begins_with_its_data_and_where_it_runs(
    one_layer, tokenizer, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(FineTuning, "train", lambda self: None)
    for name in ("evaluate", "report"):
        monkeypatch.setattr(FineTuning, name, lambda self, *figures: {})
    data = Splits(TRAIN, TRAIN, 16)
    config = TrainingConfig(batch_size=4, learning_rate=1000)
    run = RunFolder(tmp_path / "run", {})
    task = Classification(["bad", "good"])
    with caplog.at_level("INFO", "absl"):
        FineTuning(
            task, build_model(one_layer, "classifier", 2), tokenizer, data, config, run=run
        ).run_all()
    line, shared, rate, tokens = caplog.messages
    assert line.startswith("train: 8 examples (good 4, bad 4); dev: 8 examples")
    assert "8 of them in train" in line and "1 CPU in float32" in line
    assert shared.startswith("8 of the 8 examples of `dev`") and rate.startswith(
        "learning_rate=1000"
    )
    assert tokens.startswith("2 batches") and "% unknown" in tokens


def test_texts_that_are_cut_are_counted_by_split(tokenizer, caplog):
    splits = {"train": TRAIN, "dev_web": WEB, "test": DEV}
    with caplog.at_level("INFO", "absl"):
        finetuning.encode_splits(
            Classification(["bad", "good"]), tokenizer, splits, TrainingConfig(), 5
        )
    assert caplog.messages == [
        "4 of 8 texts of train were cut to max_length=5 tokens.",
        "1 of 3 texts of test were cut to max_length=5 tokens.",
    ]
