"""No answer below a threshold: its choice, its scores, and the folder that keeps it."""

import numpy as np
import pytest

from tfnlp.models import build_model
from tfnlp.pipelines import load_runner
from tfnlp.tasks import Classification
from tfnlp.tasks.classifier_settings import Decision
from tfnlp.tasks.selective_classification import selective_threshold
from tfnlp.text import Examples
from tfnlp.training import FineTuning, RunFolder, TrainingConfig
from tfnlp.utils.errors import InputError


def test_the_threshold_answers_the_most_texts_at_an_accuracy():
    p = np.array([0.6, 0.9, 0.8, 0.7, 0.7])
    right = np.array([False, True, True, True, False])
    assert selective_threshold(p, right, 1.0) == pytest.approx(0.75)
    # 3 of 4 at 0.7, of which one alone cannot be answered; 3 of 5 with all.
    assert selective_threshold(p, right, 0.7) == pytest.approx(0.65)
    assert selective_threshold(p, right, 0.6) == 0.0
    assert selective_threshold(p, ~right, 1.0) == 0.0  # 2 of 5 is the highest accuracy


def test_scores_with_texts_that_have_no_answer():
    task = Classification(["no", "yes"], decision=Decision(threshold=0.7, none_label="?"))
    p = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.75, 0.25]])
    outputs = {"logits": np.log(p)}
    examples = Examples(["a"] * 4, None, [0, 1, 0, 1])
    assert task.decode(examples, None, outputs) == ["no", "yes", "?", "no"]
    scores = task.score(examples, None, outputs)
    assert (scores["accuracy"], scores["coverage"]) == (0.5, 0.75)
    assert scores["selective_accuracy"] == pytest.approx(2 / 3)
    assert scores["macro_f1"] == pytest.approx((2 * 1 / (2 + 2) + 2 * 1 / (2 + 1)) / 2)
    for decision, message in (
        ({"none_label": "yes"}, "none_label=yes must be a name that no class has"),
        ({"selective_accuracy": 0.9}, "selective_accuracy=0.9 chooses the threshold"),
        ({"threshold": 1.5}, "threshold=1.5 must be at most 1"),
    ):
        with pytest.raises(InputError, match=message):
            Classification(["no", "yes"], decision=Decision(**{"threshold": 0.7} | decision))


def test_a_trained_folder_keeps_the_threshold_that_dev_chose(
    one_layer, tokenizer, noisy_splits, tmp_path
):
    data = noisy_splits(64)
    decision = Decision(calibrated=True, selective_accuracy=0.9, none_label="unsure")
    task = Classification(["bad", "good"], "coverage", decision=decision)
    config = TrainingConfig(epochs=4, batch_size=8, learning_rate=1e-2, keep_every=8)
    model, run = build_model(one_layer, "classifier", 2), RunFolder(tmp_path / "run", {})
    figures = FineTuning(task, model, tokenizer, data, config, run).run_all()
    assert figures["dev_selective_accuracy"] >= 0.9 and 0 < figures["dev_coverage"] < 1
    assert "threshold" not in (run.checkpoints / "step_8/config.json").read_text()
    runner = load_runner(run.best)
    answers = [prediction.label for prediction in runner.classify(data.dev.texts)]
    assert answers.count("unsure") == round(32 * (1 - figures["dev_coverage"]))
    right = [name == ("bad", "good")[y] for name, y in zip(answers, data.dev.labels, strict=True)]
    assert np.mean(right) == pytest.approx(figures["dev_accuracy"])
    page = (run.path / "report.html").read_text()
    assert "Worst mistakes on dev" in page and data.dev.texts[right.index(False)] in page
    assert "Worst mistakes" not in (run.path / "README.md").read_text()


def test_a_probability_that_is_the_threshold_is_answered():
    task = Classification(["a", "b"], decision=Decision(threshold=0.5))
    assert task.decode(None, None, {"logits": [np.zeros(2, "float32")]}) == ["a"]
