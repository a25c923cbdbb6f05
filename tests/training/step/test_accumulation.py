"""A batch that is read in parts makes the step of the whole batch."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.training import strategy_runs as runs
from tfnlp.training import TrainingConfig, compile_model
from tfnlp.training.step.non_finite_steps import SkipsNonFiniteSteps

# The fourth is less than the parts, the others are not shared evenly.
SIZES = [8, 7, 5, 2, 8, 8]
ONE = tf.distribute.get_strategy()


def test_steps_in_parts_are_those_of_whole_batches():
    """Of losses of tokens, of pairs of tokens and of texts together."""

    def trained(parts):
        return runs.train(ONE, runs.dataset("tagging", SIZES), runs.distiller, parts)

    (whole, moved, norm, logs), (parts, _, other_norm, other_logs) = trained(1), trained(4)
    assert runs.largest_difference(whole, parts) <= 1e-6
    assert moved > 0.008
    assert other_norm == pytest.approx(norm, abs=1e-7)
    for key, value in logs.items():
        assert other_logs[key] == pytest.approx(value, abs=1e-6), key


def test_the_loss_of_the_whole_batch_is_watched():
    class Watched(SkipsNonFiniteSteps, runs.FineTuner):
        pass

    task, made = runs.TASKS["tagging"], []

    def make():
        made.append(Watched(runs.text_model(task), task))
        return made[0]

    *_, logs = runs.train(ONE, runs.dataset("tagging", [7]), make, parts=4)
    assert float(made[0].last_step[1]) == pytest.approx(logs["loss"], rel=1e-5)


def test_what_is_drawn_is_drawn_once_for_each_part():
    """The pass that counts leaves seeds and metrics as they were."""
    model = runs.FineTuner(
        runs.text_model(runs.TASKS["tagging"], dropout=0.5), runs.TASKS["tagging"]
    )
    compile_model(TrainingConfig(batch_size=8, accumulation_steps=4), model, 1)
    (seed,) = [v for v in model.non_trainable_variables if "seed" in v.path]
    before = np.asarray(seed)
    model.fit(runs.dataset("tagging", [8]), verbose=0)
    assert (np.asarray(seed) - before).sum() == 4


def test_a_loss_that_does_not_say_its_weights_is_refused():
    model = runs.FineTuner(runs.text_model(runs.TASKS["regression"]), runs.TASKS["regression"])
    model.compute_loss = lambda x, y, y_pred, sample_weight, training: keras.ops.mean(
        y_pred["logits"]
    )
    compile_model(TrainingConfig(batch_size=4, accumulation_steps=2), model, 1)
    with pytest.raises(ValueError, match="accumulation_steps=2 needs losses"):
        model.fit(runs.dataset("regression", [4]), verbose=0)
