"""Contracts of all tasks: each is learned, and its loss excludes padding."""

import numpy as np
import pytest

from tfnlp.checkpoints import load_model, read_task_settings
from tfnlp.models import build_model
from tfnlp.tasks import Classification, MultipleChoice, QuestionAnswering, Regression, Tagging
from tfnlp.tasks.multiple_choice import Choices
from tfnlp.tasks.question_answering import Questions
from tfnlp.tasks.regression import ScoredExamples
from tfnlp.tasks.tagging import TaggedSentences
from tfnlp.text import Examples
from tfnlp.text.batching.batches import IGNORED
from tfnlp.training import FineTuner, FineTuning, RunFolder, Splits, TrainingConfig, encode_batches
from tfnlp.training.step.adversarial import AdversarialRegularizer


def data_for(task_name, ends=("film",)):
    """A task and examples for it, whose texts end in one of `ends`, in turn."""
    picks = np.random.default_rng(0).integers(0, 2, 48).tolist()
    texts = [f"the {['fine', 'dull'][p]} {ends[i % len(ends)]}" for i, p in enumerate(picks)]
    if task_name == "classifier":
        return Classification(["0", "1"]), Examples(texts, labels=picks)
    if task_name == "regression":
        return Regression(), ScoredExamples(texts, texts, [float(p) for p in picks])
    if task_name == "tagger":
        sentences = [text.split() for text in texts]
        tags = [["B-x" if word == "dull" else "O" for word in words] for words in sentences]
        return Tagging(["O", "B-x"]), TaggedSentences(sentences, tags)
    if task_name == "characters":
        inside = [["O"] * 4, ["B-x", "I-x", "I-x", "I-x"]]
        tags = [
            ["O"] * 4 + inside[p] + ["O"] * len(t[8:]) for p, t in zip(picks, texts, strict=True)
        ]
        return Tagging(["O", "B-x", "I-x"], unit="character"), TaggedSentences(texts, tags)
    if task_name == "answerer":
        contexts = [f"the fine {ends[i % len(ends)]} is dull" for i in range(48)]
        places = [
            [(4, "fine")] if p else [(c.index("dull"), "dull")]
            for p, c in zip(picks, contexts, strict=True)
        ]
        questions = [["is ?", "a ?"][p] for p in picks]
        return QuestionAnswering(), Questions([*map(str, range(48))], questions, contexts, places)
    endings = [["dull", "fine"] if p else ["fine", "dull"] for p in picks]
    return MultipleChoice(), Choices(texts, endings, picks)


TASKS = ("classifier", "regression", "tagger", "answerer", "chooser")


@pytest.mark.parametrize(
    ("name", "adversarial"), [*((name, False) for name in TASKS), ("characters", True)]
)
def test_every_task_is_learned(name, adversarial, tiny_config, tokenizer, tmp_path):
    """Scored on texts that are not among those it is trained on."""
    task, train = data_for(name, ends=("film", "plot", "film !", "x plot"))
    _, dev = data_for(name, ends=("plot !", "x film"))
    model = build_model(tiny_config, task.kind.head, task.num_classes)
    regularizer = AdversarialRegularizer(model, task.kind, 0.5) if adversarial else None
    config = TrainingConfig(epochs=8, batch_size=8, learning_rate=2e-3)
    data, run = Splits(train, dev, 32), RunFolder(tmp_path / "run", {})
    tuning = FineTuning(task, model, tokenizer, data, config, run, regularizer=regularizer)
    figures = tuning.run_all()
    assert figures[f"dev_{task.monitor}"] > 0.95
    assert "dev_only_answer" not in figures
    check_dev_loss_and_baseline(task, tokenizer, dev, run, figures)
    assert (run.path / "curves.png").exists() and (run.best / "config.json").exists()
    unit = {"tagger": "word", "characters": "character"}.get(name)
    assert read_task_settings(run.best).get("unit") == unit


def check_dev_loss_and_baseline(task, tokenizer, dev, run, figures):
    """The logged loss on dev is that of Keras' `evaluate`; the figures have the baseline's."""
    best = load_model(run.best, task.kind.head, task.num_classes)
    trained = FineTuner(best, task)
    trained.compile()
    batches = encode_batches(task, tokenizer, dev, 32, 8)
    loss = trained.evaluate(batches.dataset(), verbose=0)
    score = f"val_{task.monitor}"
    kept = max(run.metrics(), key=lambda epoch: epoch[score])
    assert kept["val_loss"] == pytest.approx(loss, rel=1e-3, abs=1e-6)
    assert run.metrics()[-1]["val_loss"] < run.metrics()[0]["val_loss"]
    baselines = {k: v for k, v in figures.items() if "_baseline_" in k}
    if isinstance(task, QuestionAnswering):
        assert not baselines
        return
    expected = task.baseline(dev)
    assert baselines == {f"dev_baseline_{name}": value for name, value in expected.items()}
    assert expected.keys() == {
        key.removeprefix("val_") for key in kept if f"dev_{key[4:]}" in figures
    }


@pytest.mark.parametrize("name", [name for name in TASKS if name != "answerer"])
def test_losses_exclude_padding(name, tiny_config, tokenizer):
    """The loss of a batch is the mean of its parts, however they are padded and weighted."""
    task, data = data_for(name, ends=("film", "unbelievable plot !", "plot"))
    model = build_model(tiny_config, task.kind.head, task.num_classes)
    batches = encode_batches(task, tokenizer, data, 32, 4)
    inputs, labels = batches.batch(np.arange(4))
    assert 0.1 < np.mean(inputs["padding_mask"] == 0) < 0.5
    outputs = model(inputs)
    parts, counts = [], []
    for i in range(4):
        x, y = batches.batch(np.array([i]))
        parts.append(float(task.loss(y, model(x))))
        # A mean over tokens, where they have labels, and over texts elsewhere.
        counts.append(np.sum(y != IGNORED) if name == "tagger" else 1)
    assert np.std(parts) > 0.01
    for weights in (None, np.array([0.5, 0, 2, 1], "float32")):
        expected = np.average(parts, weights=counts if weights is None else counts * weights)
        assert float(task.loss(labels, outputs, weights)) == pytest.approx(expected, abs=1e-5)
