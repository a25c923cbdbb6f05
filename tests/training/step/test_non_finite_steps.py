"""Steps whose numbers are not finite, or whose loss explodes."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.kills import assert_same_weights, progress_of
from tests.training.test_survives import CONFIG, HUGE, NAN, make_batches, train
from tfnlp.training import RunFolder
from tfnlp.training.step.non_finite_steps import EXPLODES, NOT_FINITE, SkipsNonFiniteSteps
from tfnlp.utils.errors import InputError

# Graphs of so few and small steps take longer than they.
pytestmark = pytest.mark.usefixtures("no_graphs")


def test_an_exploding_loss_stops_the_run(tmp_path, tokenizer):
    with pytest.raises(InputError, match=r"^At step 4 of epoch 2 .* loss is [\d.e+]+, of"):
        train(tmp_path / "run", tokenizer, {(1, 3): HUGE})


def test_a_bad_batch_stops_the_run_before_it_harms(tmp_path, tokenizer):
    folder = tmp_path / "run"
    bad = {(1, 3): NAN}
    message = r"^At step 4 of epoch 2 .* not finite.*on_nan=skip"
    for _ in range(2):  # the same command says so again, at once
        with pytest.raises(InputError, match=message):
            train(folder, tokenizer, bad)
    run = RunFolder(folder, {"seed": 0})
    assert progress_of(run)["step"] == 4
    with np.load(folder / "bad_batch.npz") as saved:
        expected = make_batches(tokenizer, {})
        inputs, labels = list(expected.epoch(1))[3]
        np.testing.assert_array_equal(saved["labels"], labels)
        np.testing.assert_array_equal(saved["token_ids"], inputs["token_ids"])
        assert saved["padding_mask"].max() == NAN
    # Without that batch it ends as a run that skipped it from the start.
    skipping = dataclasses.replace(CONFIG, on_nan="skip")
    resumed, run = train(folder, tokenizer, bad, skipping)
    skipped, _ = train(tmp_path / "skipped", tokenizer, bad, skipping)
    assert_same_weights(resumed, skipped)
    last = run.metrics()[-1]
    assert last["skipped_steps"] == 1 and last["loss"] < 10
    assert last["val_accuracy"] > 0.5


class Watched(SkipsNonFiniteSteps, keras.Model):
    """A model whose losses are given."""


def test_a_loss_below_the_limit_of_1_does_not_explode():
    """Near 0 a loss may grow by any factor."""
    model = Watched()
    model.compile(keras.optimizers.SGD())
    limit = float(EXPLODES)
    losses = [1e-4, 0.9 * limit, 1.1 * limit]
    watched = [float(model.watched(tf.constant(loss))) for loss in losses]
    np.testing.assert_allclose(watched, [1e-4, 0.9 * limit, np.nan], rtol=1e-6)


def test_a_bad_loss_leaves_the_mean_of_earlier_ones():
    model = Watched()
    model.compile(keras.optimizers.SGD())
    for loss in (2.0, 4.0, 1000.0, float("inf")):
        model.watched(tf.constant(loss))
    np.testing.assert_allclose(model.last_step, [NOT_FINITE, 0, 0.99 * 2 + 0.01 * 4], rtol=1e-6)
    model.watched(tf.constant(1000.0))
    assert model.skip_reason() == "the loss is 1000, of 2.02 before"


def test_too_many_bad_batches_in_a_row_are_no_matter_of_the_data(tmp_path, tokenizer):
    bad = {(e, n): NAN for e in range(3) for n in range(7)}
    config = dataclasses.replace(CONFIG, epochs=3, on_nan="skip")
    with pytest.raises(InputError, match=r"^At step 3 of epoch 2 .* 10 batches in a row"):
        train(tmp_path / "run", tokenizer, bad, config)
