"""Temperatures and calibration errors, and a trained model that keeps its temperature."""

import keras
import numpy as np
import pytest
from scipy import special

from tfnlp.checkpoints import read_task_settings
from tfnlp.models import build_model
from tfnlp.pipelines import load_runner
from tfnlp.tasks import Classification
from tfnlp.tasks.classifier_settings import Decision
from tfnlp.tasks.temperature_scaling import calibration_error, fit_temperature
from tfnlp.training import FineTuning, RunFolder, TrainingConfig


def test_the_error_is_the_gap_of_each_bin():
    p = np.array([0.95, 0.85, 0.65, 0.62, 0.61])
    logits = np.log(np.stack([p, 1 - p], 1))
    labels = np.array([0, 1, 0, 1, 1])
    # Of 10 bins: 1 of 1 right at 0.95, none of 1 at 0.85, 1 of 3 at 0.6267.
    due = (0.05 + 0.85 + 3 * (0.6266666 - 1 / 3)) / 5
    assert calibration_error(logits, labels, bins=10) == pytest.approx(due, abs=1e-6)
    assert calibration_error(np.eye(2) * 50, np.array([0, 1])) == pytest.approx(0)


def test_the_temperature_of_drawn_labels_is_found():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(20_000, 3)) * 2
    draws = special.softmax(logits, 1).cumsum(1) > rng.random((20_000, 1))
    labels = draws.argmax(1)
    for t in (0.5, 1.0, 3.0):
        assert fit_temperature(logits * t, labels) == pytest.approx(t, rel=0.03)
    before, after = (calibration_error(x, labels) for x in (logits * 3, logits))
    assert before > 0.1 > 0.02 > after


def test_a_calibrated_model_keeps_its_answers(one_layer, tokenizer, noisy_splits, tmp_path):
    data = noisy_splits(48)
    config = TrainingConfig(epochs=6, batch_size=8, learning_rate=1e-2)
    runners, figures = [], []
    for calibrated in (False, True):
        keras.utils.set_random_seed(0)
        model = build_model(one_layer, "classifier", 2)
        task = Classification(["bad", "good"], decision=Decision(calibrated=calibrated))
        run = RunFolder(tmp_path / str(calibrated), {})
        figures.append(FineTuning(task, model, tokenizer, data, config, run).run_all())
        runners.append(load_runner(run.best))
    temperature = figures[1].pop("temperature")
    assert read_task_settings(run.best)["temperature"] == temperature
    assert task.settings is None  # else another run of the task would begin with it
    plain, cooled = (
        np.log([[*p.probabilities.values()] for p in runner.classify(data.train.texts)])
        for runner in runners
    )
    ratios = (plain[:, 0] - plain[:, 1]) / (cooled[:, 0] - cooled[:, 1])
    np.testing.assert_allclose(ratios, temperature, rtol=1e-3)
    assert abs(temperature - 1) > 0.02
    assert figures[0]["dev_accuracy"] == figures[1]["dev_accuracy"]
    answers = np.array(data.dev.labels)
    for name, logits in (
        ("dev_calibration_error", cooled),
        ("dev_calibration_error_before", plain),
    ):
        due = calibration_error(logits[:24], answers)
        assert figures[1][name] == pytest.approx(due, abs=1e-4)
